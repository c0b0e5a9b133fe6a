// The full-screen view: what it knows, what the user has chosen, and what it draws.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct WatchTests {
  private static let schema = Contract.Schema(
    device: "ev", kind: "obd",
    Schema(
      properties: [
        Property("polls", .int, group: .statistics, rank: .statistic, help: ""),
        Property("cells-1-32", .list, unit: "V", group: .cells, rank: .detail, help: ""),
        Property("cells-33-64", .list, unit: "V", group: .cells, rank: .detail, help: ""),
        Property("wheel-speed", .float, unit: "km/h", group: .drive, rank: .detail, help: ""),
        Property("rpm", .int, unit: "rpm", group: .drive, help: ""),
        Property("speed", .float, unit: "km/h", group: .drive, rank: .headline, help: ""),
        Property("battery", .float, unit: "%", range: 0...100, group: .battery, rank: .headline, help: ""),
        Property("mode", .string, group: .settings, help: ""),
      ], actions: []))

  private static func reading(
    _ property: String, _ value: Contract.Value?, age: Double? = 0, at wall: Double = 100, _ reason: String? = nil
  )
    -> Contract.Reading
  {
    let unit = schema.properties.first { $0.name == property }?.unit
    return Contract.Reading(
      device: "ev", property: property, value: value, unit: unit, time: age.map { Int((wall - $0) * 1e6) }, age: value == nil ? nil : age,
      reason: reason)
  }

  private static let ev = Contract.Device(
    name: "ev", kind: "obd", state: "polling", links: [Contract.Link(name: "main", url: "tcp:h:1", state: "up", since: 40_000_000)],
    readings: [
      reading("polls", .int(7)), reading("cells-1-32", .list([String](repeating: "3.8", count: 31) + ["3.9"])),
      reading("cells-33-64", .list([String](repeating: "3.82", count: 31) + ["?"])),
      reading("wheel-speed", nil, "not reported by this car"), reading("rpm", .int(3308)), reading("speed", .float(50.4), age: 30),
      reading("battery", .float(9.5)), reading("mode", .string("eco")),
    ])

  private static func model(_ devices: [Contract.Device] = [ev]) -> WatchModel {
    var model = WatchModel()
    model.declare(schema)
    model.apply(.init(sequence: 0, snapshot: devices), at: 1000, wall: 100)
    return model
  }

  private func lines(_ model: WatchModel, _ view: WatchView = WatchView(), columns: Int = 80, rows: Int = 18, now: Double = 1000)
    -> [String]
  {
    let frame = WatchRenderer(model, view, columns: columns, rows: rows, now: now, wall: now - 900)
    return (0..<rows).map(frame.grid.line)
  }

  // MARK: Model

  @Test func `rows are ordered by group and importance`() {
    #expect(
      Self.model().devices[0].rows.map(\.name) == ["speed", "rpm", "wheel-speed", "battery", "cells-1-32", "cells-33-64", "mode", "polls"])
  }

  @Test func `a steady value keeps its true age, one that waited in the socket too`() {
    var model = Self.model()
    model.apply(.init(sequence: 1, changes: [Self.reading("rpm", .int(3308), age: 0, at: 110)]), at: 1010.5, wall: 110.5)
    #expect(model.devices[0].row("rpm")?.age(at: 1011) == 1)
    #expect(model.devices[0].row("speed")?.age(at: 1011) == 41)
    #expect(Meaning.age(model.devices[0].row("rpm")?.age(at: 1011)) == "now")
    let changed = model.devices[0].row("rpm")?.changedAt
    #expect(changed == 1000)
  }

  @Test(arguments: [(98_000_000, 4.0), (150_000_000, 0.5), (-86_400_000_000, 0.5), (Int.max, 0.5), (Int.min, 0.5)])
  func `a clock change does not affect ages`(_ time: Int, _ age: Double) {
    var model = Self.model()
    let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(1), time: time, age: 0.5)
    model.apply(.init(sequence: 1, changes: [reading]), at: 1002, wall: 102)
    #expect(model.devices[0].row("rpm")?.age(at: 1002) == age)
  }

  @Test func `a new snapshot removes undeclared properties and keeps histories, a removed device disappears`() throws {
    var model = Self.model()
    var less = Self.ev
    less.readings.removeAll { $0.property != "rpm" }
    model.apply(.init(sequence: 1, snapshot: [less]), at: 1010, wall: 110)
    #expect(model.devices[0].rows.map(\.name) == ["rpm"])
    #expect(model.devices[0].rows[0].history.samples(step: 60, until: 10) == [3308])
    // Also those that are only part of the header.
    var header = WatchModel(try References(["ev.rpm"], in: [Self.schema]))
    var more = less
    more.readings.append(Self.reading("mil", .bool(true)))
    header.apply(.init(sequence: 0, snapshot: [more]), at: 1000, wall: 100)
    #expect(header.devices[0].row("mil") != nil)
    header.apply(.init(sequence: 1, snapshot: [less]), at: 1001, wall: 101)
    #expect(header.devices[0].row("mil") == nil)
    let removed = Contract.Event(device: "ev", name: Contract.Event.removed, text: "", time: 0)
    model.apply(.init(sequence: 2, events: [removed]), at: 1011, wall: 111)
    #expect(model.devices.isEmpty)
  }

  @Test func `a device without declarations is reported once`() {
    var model = WatchModel()
    model.apply(.init(sequence: 0, snapshot: [Self.ev]), at: 1000, wall: 100)
    #expect(model.takeUndeclared() == ["ev"])
    model.apply(.init(sequence: 1, snapshot: [Self.ev]), at: 1001, wall: 101)
    #expect(model.takeUndeclared().isEmpty)
    model.declare(Self.schema)
    #expect(model.devices[0].rows.first?.name == "speed")
  }

  @Test func `only selected properties are shown`() throws {
    let references = try References(["ev.cell*"], in: [Self.schema])
    var model = WatchModel(references)
    model.declare(Self.schema)
    let other = Contract.Device(name: "torq", kind: "longboard", state: "ready")
    model.apply(.init(sequence: 0, snapshot: [Self.ev, other], changes: [Self.reading("rpm", .int(1))]), at: 1000, wall: 100)
    #expect(model.devices.map(\.device.name) == ["ev"] && model.devices[0].rows.count == 2)
  }

  // MARK: History

  @Test func `a history holds one value a second for a minute`() {
    var history = SampleHistory()
    #expect(history.samples(step: 1, until: 0).isEmpty)
    for second in 0..<100 { history.add(Double(second), at: second) }
    #expect(history.samples(step: 1, until: 99) == (40..<100).map { Float($0) })
    #expect(history.samples(step: 20, until: 99) == [59, 79, 99])
    // A value counts until the next one; steps that have only begun show the latest value.
    #expect(history.samples(step: 20, until: 105) == [79, 99, 99])
    #expect(history.samples(step: 20, until: 100_000) == [99, 99, 99])
  }

  @Test func `a withdrawn value leaves a gap, an old reading fills the past`() {
    var history = SampleHistory()
    history.add(1, at: -50)
    history.add(nil, at: -30)
    history.add(2, at: -10)
    #expect(history.samples(step: 10, until: -1) == [nil, 1, 1, nil, nil, 2])
    history.add(3, at: -45)
    #expect(history.samples(step: 10, until: -1) == [nil, 3, 3, nil, nil, 2])
    history.add(9, at: -100)
    #expect(history.samples(step: 60, until: -1) == [2])
    history.add(5, at: 1000)
    #expect(history.samples(step: 30, until: 1000) == [2, 5])
  }

  @Test func `graphs and bars have the height and length of their numbers`() {
    #expect(Glyphs.sparkline([0, nil, 50, 100]) == "▁ ▄█")
    #expect(Glyphs.sparkline([100, 100.1, 100]) == "▄▄▄", "noise of a steady value")
    #expect(Glyphs.sparkline([nil, nil]) == "  " && Glyphs.sparkline([0, 0, nil]) == "── ")
    #expect(Glyphs.bar(0.5, width: 10) == ("█████", "·····"))
    #expect(Glyphs.bar(0.0625, width: 2) == ("▏", "·") && Glyphs.bar(7, width: 2) == ("██", "") && Glyphs.bar(-1, width: 2) == ("", "··"))
    #expect([1, 7, 10, 20, 24, 30, 59, 60, 500].map { Glyphs.step(width: $0) } == [60, 9, 6, 3, 3, 2, 2, 1, 1])
    #expect(Glyphs.large("-1.4", scale: 1) == ["    ▄█    █ █ ", "▀▀▀  █    ▀▀█ ", "    ▀▀▀ ▀   ▀ "])
    #expect(Glyphs.large("7", scale: 2).count == 5)
  }

  // MARK: View

  @Test func `a small window shows values, statistics only on request`() {
    let shown = lines(Self.model())
    #expect(shown[0] == "[ev]" && shown[1] == "ev obd  polling  tcp:h:1 up 60 s")
    #expect(shown[2].hasPrefix("drive ───") && shown[3].hasPrefix("  speed ") && shown[3].hasSuffix("30 s"))
    #expect(shown[4].contains("3308 rpm") && shown[4].hasSuffix("now"))
    #expect(shown.contains { $0.contains("9.5 %") && $0.contains("█·········") })
    #expect(shown.contains { $0.contains("64 cells, 1 unreadable  3.80–3.90 V, Δ 100 mV") })
    #expect(!shown.contains { $0.contains("polls") || $0.contains("wheel-speed") })
    #expect(shown.last?.hasPrefix("q quit  ? help  / filter  s sort") == true && shown.last?.hasSuffix("2 hidden") == true)
    let all = lines(Self.model(), WatchView(showsAll: true), rows: 24)
    #expect(all.contains { $0.contains("polls") } && all.contains { $0.contains("– not reported by this car") })
  }

  @Test(arguments: [(1, 1), (5, 2), (20, 4), (40, 10), (79, 23), (109, 30), (110, 30), (300, 80)])
  func `every size of window can be drawn`(_ columns: Int, _ rows: Int) {
    var view = WatchView(showsAll: true)
    let many = (0..<12).map { number in
      var device = Self.ev
      device.name = number == 0 ? "ev" : "a-rather-long-name-\(number)"
      if number == 3 { device.fault = "cannot open /dev/ttyUSB0: permission denied; add the user to group dialout" }
      return device
    }
    let model = Self.model(many)
    for key in [KeyPress.tab, .character("?"), .escape, .end, .character("/"), .character("é")] {
      #expect(lines(model, view, columns: columns, rows: rows).count == rows)
      _ = view.handle(key, model, at: 1000, wall: 100)
    }
    #expect(lines(WatchModel(), view, columns: columns, rows: rows).count == rows)
  }

  @Test func `keys scroll within the lines`() {
    let model = Self.model()
    var view = WatchView(showsAll: true)
    func press(_ keys: KeyPress...) -> Int {
      for key in keys { _ = view.handle(key, model, at: 1000, wall: 100) }
      return view.scroll
    }
    view.noteFrame(visible: 5, total: 12)
    #expect(
      press(.up) == 0 && press(.down, .down) == 2 && press(.pageDown) == 7 && press(.down) == 7 && press(.home) == 0 && press(.end) == 7)
    #expect(press(.pageUp) == 2)
    view.noteFrame(visible: 11, total: 12)
    #expect(view.scroll == 1)
    #expect(lines(model, view, rows: 10)[2].hasPrefix("  speed"), "one line is above the first one")
  }

  @Test func `a small window shows the whole help by scrolling`() {
    let model = Self.model()
    var view = WatchView(showsAll: true)
    view.noteFrame(visible: 5, total: 12)
    for key in [KeyPress.down, .character("?")] { _ = view.handle(key, model, at: 1000, wall: 100) }
    var shown: [String] = []
    for _ in 0..<60 {
      let frame = WatchRenderer(model, view, columns: 40, rows: 12, now: 1000, wall: 100)
      view.noteFrame(visible: frame.visible, total: frame.total)
      shown += lines(model, view, columns: 40, rows: 12)
      _ = view.handle(.down, model, at: 1000, wall: 100)
    }
    for text in ["q, Ctrl-C        quit", "latest", "does not report", "measured", "codes (amber)"] {
      #expect(shown.contains { $0.contains(text) }, "\(text)")
    }
    #expect(view.showsHelp)
    _ = view.handle(.escape, model, at: 1000, wall: 100)
    #expect(!view.showsHelp && view.scroll == 1)
  }

  @Test func `the filter is typed, kept and cleared`() {
    let model = Self.model()
    var view = WatchView()
    func press(_ keys: KeyPress...) -> Bool { keys.allSatisfy { view.handle($0, model, at: 1000, wall: 100) } }
    #expect(press(.character("/"), .character("R"), .character("q"), .backspace, .character("p")))
    #expect(view.filter == "rp" && view.isTyping && lines(model, view).contains { $0.contains("rpm") })
    #expect(!lines(model, view).contains { $0.contains("mode") } && lines(model, view).last?.hasPrefix("/rp   Enter keeps") == true)
    #expect(press(.enter) && !view.isTyping && press(.escape) && view.filter.isEmpty)
    #expect(press(.character("/"), .character("z"), .enter) && lines(model, view)[2] == "nothing matches \"z\"; Esc clears the filter")
    #expect(!press(.character("q")))
  }

  @Test func `the order is by group, name, age or change`() {
    var model = Self.model()
    model.apply(.init(sequence: 1, changes: [Self.reading("mode", .string("sport"), at: 105)]), at: 1005, wall: 105)
    var view = WatchView()
    func names() -> [String] {
      WatchLines(model.devices[0], view, width: 60, largest: 0, isCompact: true, now: 1005).lines.compactMap {
        if case .row(let row) = $0 { row.name } else { nil }
      }
    }
    func sort() -> [String] {
      _ = view.handle(.character("s"), model, at: 1005, wall: 105)
      return names()
    }
    #expect(names() == ["speed", "rpm", "battery", "mode"])
    #expect(sort() == ["battery", "cells-1-32", "cells-33-64", "mode", "rpm", "speed"])
    #expect(sort() == ["mode", "rpm", "battery", "cells-1-32", "cells-33-64", "speed"])
    #expect(sort() == ["mode", "rpm", "battery", "cells-1-32", "cells-33-64", "speed"] && view.order == .change)
    #expect(sort() == ["speed", "rpm", "battery", "mode"])
  }

  @Test func `a frozen view shows the values and ages of that moment`() {
    var model = Self.model()
    var view = WatchView()
    _ = view.handle(.character(" "), model, at: 1001, wall: 101)
    model.apply(.init(sequence: 1, changes: [Self.reading("rpm", .int(4000), at: 120)]), at: 1020, wall: 120)
    let frozen = lines(model, view, now: 1030)
    #expect(frozen.contains { $0.contains("3308 rpm") && $0.hasSuffix("now") } && frozen.last?.contains("FROZEN") == true)
    _ = view.handle(.character(" "), model, at: 1030, wall: 130)
    #expect(lines(model, view, now: 1030).contains { $0.contains("4000 rpm") && $0.hasSuffix("10 s") })
  }

  @Test func `a lost connection greys out all values until the next snapshot, which may lack devices`() {
    var other = Self.ev
    other.name = "torq"
    var model = Self.model([Self.ev, other])
    model.lose("no connection to the daemon; reconnecting", at: 1002)
    for columns in [80, 120] {
      let grid = WatchRenderer(model, WatchView(), columns: columns, rows: 18, now: 1003, wall: 103).grid
      let shown = (0..<18).map(grid.line)
      let row = shown.firstIndex { $0.contains("no connection to the daemon; reconnecting") } ?? 0
      #expect(row == (columns == 80 ? 2 : 1), "\(shown)")
      #expect(shown.contains { $0.contains("3308 rpm") && $0.hasSuffix("3 s") }, "its age")
      let roles = Swift.Set(grid.cells[..<(17 * columns)].filter { !$0.isBlank }.map(\.role))
      #expect(roles == [.dim, .warn], "\(roles)")
    }
    #expect(model.devices[0].row("rpm")?.history.samples(step: 60, until: 3) == [nil])
    model.apply(.init(sequence: 0, snapshot: [Self.ev]), at: 1010, wall: 110)
    #expect(model.outage == nil && model.devices.map(\.device.name) == ["ev"])
    var empty = WatchModel()
    empty.lose("gone", at: 1011)
    let shown = lines(empty, rows: 4)
    #expect(shown[0].contains("no devices") && shown[1].contains("gone"), "\(shown)")
  }

  @Test func `the header keeps poll rate and trouble codes if other properties are selected`() throws {
    let schema = Contract.Schema(
      device: "ev", kind: "obd",
      Schema(
        properties: [
          Property("speed", .float, group: .drive, rank: .headline, help: ""), Property("mil", .bool, group: .diagnostics, help: ""),
          Property("poll-rate", .float, unit: "Hz", group: .statistics, rank: .detail, help: ""),
        ], actions: []))
    var model = WatchModel(try References(["ev.speed"], in: [schema]))
    model.declare(schema)
    var device = Self.ev
    device.readings = [Self.reading("speed", .float(50)), Self.reading("mil", .bool(true)), Self.reading("poll-rate", .float(19.95))]
    model.apply(.init(sequence: 0, snapshot: [device]), at: 1000, wall: 100)
    #expect(lines(model)[1].hasPrefix("ev obd  polling  ● 19.95 Hz  MIL on  tcp:h:1") && model.devices[0].rows.map(\.name) == ["speed"])
    model.apply(.init(sequence: 1, changes: [Self.reading("mil", .bool(false))]), at: 1000, wall: 100)
    #expect(lines(model)[0] == "[ev]" && !lines(model)[1].contains("MIL"))
  }

  @Test func `the selected device is in the list, however many there are`() {
    let many = (0..<40).map { number in
      var device = Self.ev
      device.name = "car-\(number)"
      return device
    }
    let model = Self.model(many)
    var view = WatchView()
    for number in 0..<40 {
      let shown = lines(model, view, columns: 120, rows: 12)
      #expect(shown.contains { $0.hasPrefix("› car-\(number) ") }, "\(shown)")
      #expect(shown[10].contains(" more ") && !shown.contains { $0.hasPrefix("› ") && !$0.hasPrefix("› car-\(number) ") })
      _ = view.handle(.tab, model, at: 1000, wall: 100)
    }
  }

  @Test func `trouble codes are marked in tabs and list`() {
    let schema = Contract.Schema(
      device: "ev", kind: "obd",
      Schema(
        properties: [Property("mil", .bool, group: .diagnostics, help: ""), Property("dtc-count", .int, group: .diagnostics, help: "")],
        actions: []))
    func model(_ name: String) -> WatchModel {
      var (model, device, other) = (WatchModel(), Self.ev, Self.ev)
      model.declare(schema)
      device.readings = [Self.reading("mil", .bool(true)), Self.reading("dtc-count", .int(2))]
      (device.name, other.name, other.readings) = (name, "b", [])
      model.apply(.init(sequence: 0, snapshot: [device, other]), at: 1000, wall: 100)
      return model
    }
    #expect(lines(model("ev"))[0] == "[ev!] b" && lines(model("ev"))[1].contains("polling  MIL on, 2 DTCs"))
    #expect(lines(model("ev"), columns: 120)[0].hasPrefix("› ev polling MIL on, 2 DTCs   │"))
    #expect(lines(model("a-very-long-name"), columns: 120)[0].hasPrefix("› a-very-long-name polling MIL│"))
    #expect(lines(model("a-very-very-very-long-name-of-it"), columns: 120)[0].contains("MIL│"))
  }

  @Test func `a fault is shown once, a vehicle at rest is no problem`() {
    let fault = "the vehicle has not been used for 600 s: it is polled every 30 s"
    var parked = Self.ev
    (parked.state, parked.fault) = ("parked", fault)
    parked.readings = Self.ev.readings.map { Self.reading($0.property, nil, fault) }
    var model = Self.model([parked])
    let grid = WatchRenderer(model, WatchView(), columns: 100, rows: 30, now: 1000, wall: 100).grid
    let shown = (0..<30).map(grid.line)
    #expect(shown[0] == "[ev]" && shown.filter { $0.contains("polled every") } == [fault], "\(shown)")
    #expect(shown.contains { $0.hasPrefix("  speed") && $0.hasSuffix(" –") } && !shown.contains { $0.contains("▀▀▀") })
    #expect(!grid.cells.contains { $0.role == .bad || $0.role == .good })
    #expect(DeviceStatus(parked, nil, now: 100).header(detailed: false, width: 100) { "\($1):\($0)" }.last == "  dim:\(fault)")
    parked.fault = "the 12 V battery is low (min-voltage = 11.8): polling is suspended until it reaches 12.1 V"
    model = Self.model([parked])
    #expect(lines(model)[0] == "[ev!]" && parked.needsAttention)
  }

  @Test func `a percentage of a large range has no bar`() {
    func share(_ range: ClosedRange<Double>) -> Double? {
      let reading = Contract.Reading(device: "ev", property: "load", value: .float(50), unit: "%", age: 0)
      var row = PropertyRow(reading, Contract.Property(Property("load", .float, unit: "%", range: range, help: "")))
      row.note(reading, measuredAt: nil, at: 0)
      return Meaning.share(of: row)
    }
    #expect(share(0...100) == 0.5 && share(0...25_700) == nil)
  }

  @Test func `names are cut only if there is no room, and in the middle`() {
    let name = "tyre-pressure-of-the-front-left-wheel"
    let schema = Contract.Schema(
      device: "ev", kind: "obd", Schema(properties: [Property(name, .float, unit: "kPa", group: .tyres, help: "")], actions: []))
    var device = Self.ev
    device.readings = [Contract.Reading(device: "ev", property: name, value: .float(12.345678), unit: "kPa", age: 0)]
    var model = WatchModel()
    model.declare(schema)
    model.apply(.init(sequence: 0, snapshot: [device]), at: 1000, wall: 100)
    #expect(lines(model)[3].hasPrefix("  \(name)    12.346 kPa"))
    #expect(lines(model, columns: 40)[3] == "  tyre-pr…t-wheel    12.346 kPa      now")
  }

  @Test func `problems are marked and explained`() {
    var broken = Self.ev
    broken.name = "torq"
    broken.links[0] = Contract.Link(
      name: "main", url: "ble:Torq", state: "down", reason: "no advertisement", since: 90_000_000, nextAttempt: 112_000_000)
    let model = Self.model([Self.ev, broken])
    var view = WatchView()
    _ = view.handle(.tab, model, at: 1000, wall: 100)
    let shown = lines(model, view)
    #expect(shown[0] == " ev [torq!]" && shown[2] == "link down: no advertisement; next attempt in 12 s")
    #expect(lines(model, view, columns: 120, rows: 30).contains { $0.hasPrefix("› torq polling") })
    _ = view.handle(.backTab, model, at: 1000, wall: 100)
    #expect(lines(model, view)[0] == "[ev] torq!")
  }
}
