// The properties of a board that speaks ELComm. The order of the cases is the order of the schema. The wire uses miles and mph; the
// properties use km and km/h. Values that the board marks as unknown are absent.
// Source: ProjectTORQ.ino for the fields and their special values, ELMetrics.swift for the eleven characters of a name.

/// A property of a board that speaks ELComm; its raw value is its position in the schema.
enum ELCommProperty: Int, CaseIterable, Sendable {
  case speed, battery, batteryRaw, connected, distance, totalDistance
  case buzzer, name, mode, extra
  case dialect, cycleRate, roundTrip, missed, messages, badMessages, lastBadMessage

  /// The values that require a responding board; the daemon provides the others.
  static let live: [ELCommProperty] = [.speed, .battery, .batteryRaw, .connected, .distance, .buzzer, .extra, .cycleRate, .roundTrip]

  static let maxNameLength = 11

  /// The rows of the schema. Values of the board stay valid for three poll periods, but at least two seconds.
  static func properties(period: Nanoseconds) -> [Property] {
    allCases.map { $0.property(max(3 &* period, 2 * .second)) }
  }

  private func property(_ freshFor: Nanoseconds) -> Property {
    let row = declaration
    return Property(
      row.name, row.type, unit: row.unit, range: row.range, access: self == .buzzer || self == .name ? .write : .read,
      persisted: self == .name, lifetime: Self.live.contains(self) ? .fresh(freshFor) : .retained, group: group,
      rank: rank, help: row.help)
  }

  private var group: PropertyGroup {
    switch self {
    case .speed, .distance, .totalDistance, .mode: .drive
    case .battery, .batteryRaw: .battery
    case .connected: .diagnostics
    case .buzzer, .name: .settings
    case .extra: .general
    case .dialect, .cycleRate, .roundTrip, .missed, .messages, .badMessages, .lastBadMessage: .statistics
    }
  }

  private var rank: PropertyRank {
    switch self {
    case .speed, .battery, .distance: .headline
    case .batteryRaw, .mode, .extra, .dialect, .cycleRate: .detail
    case .roundTrip, .missed, .messages, .badMessages, .lastBadMessage: .statistic
    case .connected, .totalDistance, .buzzer, .name: .main
    }
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .speed: ("speed", .float, "km/h", -411...411, "Speed, in steps of 1 mph; negative is backwards")
    case .battery: ("battery", .int, "%", 0...100, "State of charge, in the board's nine steps")
    case .batteryRaw: ("battery-raw", .int, "%", -999...999, "State of charge as sent by the board; above 100 when freshly charged")
    case .connected: ("connected", .bool, nil, nil, "The VESC responds to the board, and the board has not latched off")
    case .distance: ("distance", .float, "km", nil, "Distance since the board was reset; decreases when riding backwards")
    case .totalDistance: ("total-distance", .float, "km", 0...1e12, "Total distance; continues after a reset of the board")
    case .buzzer: ("buzzer", .bool, nil, nil, "Buzzer; sounds only while connected is true, and for a limited time")
    case .name: ("name", .string, nil, nil, "Name of the board, at most \(Self.maxNameLength) characters; stored by the daemon")
    case .mode: ("mode", .string, nil, nil, "Speed mode; not supported by ELComm")
    case .extra: ("extra", .list, nil, nil, "Fields after the fourth, if the board sends any")
    case .dialect: ("dialect", .string, nil, nil, "Side that sends first: as-built (the daemon) or documented (the board)")
    case .cycleRate: ("cycle-rate", .float, "Hz", nil, "Messages per second, over the last 10 s")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median round-trip time")
    case .missed: ("missed", .int, nil, nil, "Messages that did not arrive in time")
    case .messages: ("messages", .int, nil, nil, "Messages received since the daemon started")
    case .badMessages: ("bad-messages", .int, nil, nil, "Sequences of bytes that could not be parsed")
    case .lastBadMessage: ("last-bad-message", .string, nil, nil, "Last bytes that could not be parsed")
    }
  }

  /// Kilometres from hundredths of a mile, rounded to ten metres.
  static func kilometres(_ hundredths: Int) -> Double { (Double(hundredths) * 1.609344).rounded() / 100 }

  /// km/h from mph, rounded to a tenth.
  static func kilometresPerHour(_ mph: Int) -> Double { (Double(mph) * 16.09344).rounded() / 10 }
}

extension ELCommMessage {
  /// The value of both speed and battery if the VESC has never responded.
  private static let unknown = 255
  /// A battery value below this one is sent until the voltage has been measured.
  private static let unmeasured = -300

  /// Whether the board's values are valid, or why they are not.
  enum BoardState: Sendable, Equatable {
    case live, noVESC, latchedOff

    /// Why there are no values; nil if there are.
    var message: String? {
      switch self {
      case .live: nil
      case .noVESC: "the VESC has not responded to the board yet"
      case .latchedOff: "the board has latched off after a voltage drop: reset it"
      }
    }
  }

  var boardState: BoardState {
    if speed == Self.unknown || battery == Self.unknown { return .noVESC }
    return connected ? .live : .latchedOff
  }

  /// The state of charge, limited to 0 to 100 %, or why there is none.
  var charge: Reading.Content {
    if let message = boardState.message { return .absent(message) }
    return battery < Self.unmeasured ? .absent("the board has not measured its battery yet") : .value(.int(min(max(battery, 0), 100)))
  }
}
