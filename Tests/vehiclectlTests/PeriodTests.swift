// Trips, charges and parked periods as text: lists in every width, details, figures with their bounds.

import Testing
import Varlink

@testable import vehiclectl

@Suite struct PeriodTests {
  private static func table(_ periods: [HistoryContract.Period], _ units: Units = .metric, width: Int) throws -> [String] {
    let berlin = try #require(Zone(named: "Europe/Berlin"))
    let table = PeriodTable(.trip, periods, units, now: Double(HistoryRig.morning) / 1e6, local: berlin)
    return table.lines(width: width) { text, _ in text } + table.legend(width: width) { text, _ in text }
  }

  @Test(arguments: [
    (8.4312, 0.1, 2, "8.43 ± 0.1"), (8.4312, 0.100_000_000_001, 2, "8.43 ± 0.1"), (8.4312, 0.11, 2, "8.43 ± 0.2"),
    (31.4, 0.1, 1, "31.4 ± 0.1"),
    (131, 2, 0, "131 ± 2"), (0.131, 0.002, 2, "0.13 ± 0.01"), (17.9, 0.38, 1, "17.9 ± 0.4"), (250, 12, 1, "250.0 ± 12"), (5, 0, 1, "5.0"),
    (-0.04, 0.1, 1, "0.0 ± 0.1"), (9.96, 0.96, 1, "10.0 ± 1"),
  ]) func `a measure has as many digits as its bound allows`(_ value: Double, _ bound: Double, _ places: Int, _ text: String) {
    #expect(Measure(.init(value: value, bound: bound, source: "x"), "kWh", places: places)?.text() == text)
  }

  @Test func `measures are converted with their bounds`() {
    let consumption = Measure(.init(value: 20, bound: 1, source: "x"), "kWh/100km")?.converted(to: .imperial)
    #expect(consumption?.description == "3.1 ± 0.2 mi/kWh")
    #expect(Measure(0.0, "kWh/100km")?.converted(to: .imperial) == nil, "a consumption of 0")
    #expect(Measure(.init(value: 7, bound: 0.1, source: "x"), "L/100km")?.converted(to: .imperial)?.description == "33.6 ± 0.5 mpg")
    #expect(Measure(.init(value: 10, bound: 0.1, source: "x"), "km")?.converted(to: .imperial)?.description == "6.2 ± 0.1 mi")
  }

  @Test(arguments: [
    (0.0, "0 s"), (59, "59 s"), (60, "1 min"), (3569, "59 min"), (3570, "1 h 00 min"), (5700, "1 h 35 min"), (172_800, "2 d 0 h"),
  ]) func `spans are in two units at most`(_ seconds: Double, _ text: String) { #expect(Format.span(seconds) == text) }

  @Test(arguments: [(0, "0 B"), (999, "999 B"), (1234, "1.2 kB"), (99_960, "100 kB"), (1_234_567_890, "1.2 GB"), (-1, "0 B")])
  func `sizes have a decimal unit`(_ bytes: Int, _ text: String) { #expect(Format.size(bytes) == text) }

  @Test func `numbers have fixed decimal places`() {
    for (number, places, text) in [(1.005, 1, "1.0"), (-0.04, 1, "0.0"), (-1.25, 2, "-1.25"), (2.5, 0, "3"), (0.05, 2, "0.05")] {
      #expect(Format.fixed(number, places) == text)
    }
    #expect(Format.fixed(.infinity, 1) == "inf" && Format.fixed(.nan, 1) == "nan")
  }

  @Test func `a list shows bounds and notes where there is room`() throws {
    let lines = try Self.table([HistoryRig.openTrip, HistoryRig.trip], width: 100)
    #expect(lines == Self.wide, "\(lines.joined(separator: "\n"))")
  }

  @Test func `lists of one and of several kinds of vehicles fit 80 columns`() throws {
    var van = HistoryRig.trip
    (van.device, van.number, van.energy, van.energyPer100Kilometres, van.startStateOfCharge, van.endStateOfCharge) = (
      "van", 9, nil, nil, nil, nil
    )
    van.fuel = .init(value: 9.8, bound: 0.2, source: "fuel-rate")
    van.fuelPer100Kilometres = .init(value: 6.95, bound: 0.3, source: "fuel-rate")
    van.start -= 365 * 86_400_000_000
    van.end -= 365 * 86_400_000_000
    let mixed = try Self.table([HistoryRig.openTrip, HistoryRig.ride, HistoryRig.trip, van], width: 80)
    #expect(mixed == Self.mixed, "\(mixed.joined(separator: "\n"))")
    #expect(mixed.allSatisfy { $0.displayWidth <= 80 })
    for units in Units.allCases {
      for width in [80, 100, 160] {
        for periods in [[HistoryRig.trip], [HistoryRig.ride], [van], [HistoryRig.trip, HistoryRig.ride, van]] {
          #expect(try Self.table(periods, units, width: width).allSatisfy { $0.displayWidth <= width }, "\(units) \(width)")
        }
      }
    }
  }

  @Test func `a list fits 40 columns`() throws {
    for (period, titles) in [(HistoryRig.trip, "trip         start  time    km   kWh"), (HistoryRig.charge, "")] {
      let lines = try Self.table([period], width: 40)
      #expect(lines.prefix(2).allSatisfy { $0.displayWidth <= 40 }, "\(lines.joined(separator: "\n"))")
      #expect(lines[0].hasPrefix(titles), "\(lines[0])")
    }
  }

  @Test func `unknown marks and zones are shown as they are`() throws {
    var trip = HistoryRig.trip
    (trip.marks, trip.zone) = (["ferry"], "Mars/Olympus")
    let lines = try Self.table([trip], width: 120)
    #expect(lines.contains { $0.contains("ferry: unknown to this version of vehiclectl; update it") } && lines[1].contains("07:12 UTC"))
  }

  @Test func `a trip has its figures with bounds and sources`() {
    let result = HistoryContract.PeriodMethod.Result(
      period: HistoryRig.trip, pauses: [.init(start: HistoryRig.morning, end: HistoryRig.morning + 5 * HistoryRig.minute)], curve: [])
    let lines = PeriodDetail(result, .metric).lines(width: 80) { text, _ in text }
    #expect(lines == Self.trip, "\(lines.joined(separator: "\n"))")
    let imperial = PeriodDetail(result, .imperial).lines(width: 80) { text, _ in text }.joined(separator: "\n")
    #expect(imperial.contains("19.5 ± 0.1 mi") && imperial.contains("11311.6 → 11331.1 mi") && imperial.contains("57 → 72 °F"))
  }

  @Test func `a charge has its curve`() {
    let curve = (24...80).map { HistoryContract.CurvePoint(stateOfCharge: $0, power: $0 < 60 ? 76 : 76 - Double($0 - 60) * 2) }
    let result = HistoryContract.PeriodMethod.Result(period: HistoryRig.charge, pauses: [], curve: curve)
    let lines = PeriodDetail(result, .metric).lines(width: 60) { text, _ in text }
    #expect(lines == Self.charge, "\(lines.joined(separator: "\n"))")
  }
}

extension PeriodTests {
  fileprivate static let wide: [String] = [
    "trip             start    time    km         kWh  kWh/100km    SoC %  notes",
    "  14  Mon 23 Nov 18:12   5 min   2.1                         80 → 79  open",
    "  12  Mon 23 Nov 08:12  42 min  31.4  5.62 ± 0.1       17.9  78 → 69  interrupted",
    "2 trips: 47 min, 33.5 km, 5.6 kWh",
    "open: not finished yet",
    "interrupted: data is missing for more than a minute",
  ]
  fileprivate static let mixed: [String] = [
    "trip  device              start  time    km      used     consumption    SoC %",
    " 14¹  ev           23 Nov 18:12  0:05   2.1                            80 → 79",
    "  13  board    23 Nov 12:12 GMT  0:22   9.2    131 Wh      14.2 Wh/km",
    " 12²  ev           23 Nov 08:12  0:42  31.4  5.62 kWh  17.9 kWh/100km  78 → 69",
    "  9²  van     23 Nov 2025 08:12  0:42  31.4    9.80 L     7.0 L/100km",
    "4 trips: 1 h 51 min, 74.1 km, 5.8 kWh, 9.8 L",
    "¹ open: not finished yet",
    "² interrupted: data is missing for more than a minute",
  ]
  fileprivate static let trip: [String] = [
    "trip 12 of ev  Mon 23 Nov 2026 08:12–08:54 CET",
    "",
    "distance         31.4 ± 0.1 km          from odometer",
    "duration         42 min                 driven 36 min, standing 6 min",
    "energy           5.62 ± 0.1 kWh         from counters, 1.31 ± 0.1 kWh",
    "                                        regenerated",
    "consumption      17.9 ± 0.4 kWh/100km",
    "speed            mean 52, max 118 km/h",
    "state of charge  78 → 69 %",
    "odometer         18204.3 → 18235.7 km",
    "battery          14 → 22 °C",
    "pauses           08:12–08:17            5 min",
    "",
    "interrupted: data is missing for more than a minute",
  ]
  fileprivate static let charge: [String] = [
    "charge 15 of ev  Mon 23 Nov 2026 09:12–09:53 CET",
    "",
    "charged          32.10 ± 0.1 kWh            from counters",
    "duration         41 min                     charging 40 min",
    "power            max 76.2 kW, mean 48.1 kW",
    "type             DC",
    "state of charge  24 → 80 %",
    "",
    "power into the battery kW",
    "80 ┤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⢄⣀⡀",
    "   │                                      ⠈⠑⠢⢄",
    "60 ┤                                          ⠉⠒⠤⠤⣀",
    "   │                                               ⠉⠒⠤⣀",
    "40 ┤                                                   ⠉⠒⠒⠤⣀",
    "   │",
    "20 ┤",
    "   │",
    " 0 ┤",
    "   └─────┬─────────┬─────────┬─────────┬─────────┬─────────┬",
    "         30        40        50        60        70     80 %",
    "",
    "derived: the vehicle provides no charging status: derived",
    "from the battery current",
  ]
}
