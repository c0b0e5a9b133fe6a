// The live plot of `watch --plot`: values over time, zoom, freezing, and the program on a terminal.

import Glibc
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct LivePlotTests {
  private static let schema = Contract.Schema(
    device: "ev", kind: "obd",
    Schema(
      properties: [
        Property("rpm", .int, unit: "rpm", help: ""), Property("charging", .bool, help: ""), Property("gear", .string, help: ""),
      ], actions: []))

  private static func reading(_ name: String, _ value: Value?, at time: Double) -> Contract.Reading {
    Contract.Reading(
      device: "ev", property: name, value: value, unit: name == "rpm" ? "rpm" : nil, time: value == nil ? nil : Int(time * 1e6),
      reason: value == nil ? "stale" : nil)
  }

  private static func live(_ references: String..., span: Double = 10) throws -> LivePlot {
    LivePlot(try References(references, in: [schema]), in: [schema], span: span)
  }

  private static func feed(_ plot: inout LivePlot, _ name: String, _ value: Value?, at time: Double) {
    plot.apply(Contract.Watch.Result(sequence: 0, changes: [reading(name, value, at: time)]), at: time)
  }

  private static func values(_ plot: LivePlot, at now: Double, columns: Int = 10) -> [Int: PlotPoint] {
    let points = plot.plot(at: now, zone: .utc, columns: columns).panels.first?.series.first?.points ?? []
    return Dictionary(points.map { ($0.index, $0) }, uniquingKeysWith: { first, _ in first })
  }

  @Test func `a value counts until the next one or until it is withdrawn`() throws {
    var plot = try Self.live("rpm")
    Self.feed(&plot, "rpm", .int(10), at: 100)
    Self.feed(&plot, "rpm", .int(30), at: 103.5)
    Self.feed(&plot, "rpm", .int(500), at: 103.6)
    Self.feed(&plot, "rpm", .int(20), at: 103.7)
    Self.feed(&plot, "rpm", nil, at: 106)
    Self.feed(&plot, "rpm", .int(40), at: 108.5)
    let points = Self.values(plot, at: 110)
    #expect(points.keys.sorted() == [0, 1, 2, 3, 4, 5, 8, 9], "\(points.keys.sorted())")
    #expect(points[0]?.mean == 10 && points[3]?.minimum == 10 && points[3]?.maximum == 500 && points[3]?.last == 20)
    #expect(points[9]?.maximum == 40)
    // The plot ends now, so that the rest of its last interval is empty.
    #expect(Self.values(plot, at: 110.5)[9]?.mean == 40)
  }

  @Test func `a lost connection ends the lines and is shown until the next snapshot`() throws {
    var plot = try Self.live("rpm")
    Self.feed(&plot, "rpm", .int(10), at: 100)
    plot.lose("no connection to the daemon; reconnecting", at: 105)
    #expect(Self.values(plot, at: 110).keys.max() == 4)
    #expect(plot.frame(columns: 60, rows: 8, now: 110, zone: .utc).line(0) == " no connection to the daemon; reconnecting")
    let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [Self.reading("rpm", .int(20), at: 110)])
    plot.apply(Contract.Watch.Result(sequence: 0, snapshot: [ev]), at: 110)
    #expect(Self.values(plot, at: 112)[9]?.mean == 20)
    #expect(!plot.frame(columns: 60, rows: 8, now: 112, zone: .utc).line(0).contains("reconnecting"))
  }

  @Test(arguments: [
    Contract.Watch.Result(
      sequence: 1,
      snapshot: [Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [reading("charging", .bool(false), at: 105)])]),
    Contract.Watch.Result(sequence: 1, events: [Contract.Event(device: "ev", name: Contract.Event.removed, text: "", time: 0)]),
  ])
  func `the line of a property that no longer exists ends`(_ end: Contract.Watch.Result) throws {
    var plot = try Self.live("rpm")
    let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [Self.reading("rpm", .int(20), at: 101)])
    plot.apply(Contract.Watch.Result(sequence: 0, snapshot: [ev]), at: 101)
    plot.apply(end, at: 105)
    #expect(Self.values(plot, at: 110).keys.max() == 4)
  }

  @Test func `a property that is missing in a later snapshot has ended, once`() {
    func snapshot(_ names: String...) -> Contract.Watch.Result {
      let readings = names.map { Self.reading($0, .int(1), at: 100) }
      return .init(sequence: 0, time: 7, snapshot: [Contract.Device(name: "ev", kind: "obd", state: "polling", readings: readings)])
    }
    var ended = EndedProperties()
    #expect(ended.readings(snapshot("rpm", "gear")) == [])
    #expect(ended.readings(.init(sequence: 1, changes: [Self.reading("rpm", .int(2), at: 101)])) == [])
    #expect(
      ended.readings(snapshot("gear")) == [Contract.Reading(device: "ev", property: "rpm", time: 7, reason: "no longer declared")])
    #expect(ended.readings(snapshot("gear")) == [])
    // The device that replaces a removed one has properties of its own.
    #expect(ended.readings(.init(sequence: 1, events: [.init(device: "ev", name: Contract.Event.removed, text: "", time: 0)])) == [])
    #expect(ended.readings(snapshot()) == [])
  }

  @Test func `recorded values come before live ones, with their gaps`() throws {
    var plot = try Self.live("rpm")
    plot.prefill(
      PlotSeries(
        name: "ev.rpm", unit: "rpm", start: 100.25, width: 1,
        points: [0, 1, 4].map { PlotPoint(minimum: 10, maximum: 50, mean: 20, last: 30, index: $0) }))
    Self.feed(&plot, "rpm", .int(40), at: 107)
    let points = Self.values(plot, at: 110)
    #expect(points.keys.sorted() == [0, 1, 2, 4, 5, 6, 7, 8, 9], "\(points.keys.sorted())")
    #expect(points[1]?.minimum == 10 && points[1]?.maximum == 50 && points[1]?.last == 30 && points[8]?.mean == 40)
  }

  @Test func `what is not a number or not selected is not shown`() throws {
    var plot = try Self.live("ev.*")
    Self.feed(&plot, "gear", .string("park"), at: 100)
    #expect(plot.frame(columns: 40, rows: 5, now: 100, zone: .utc).line(0) == " no values yet")
    Self.feed(&plot, "charging", .bool(true), at: 100)
    #expect(Self.values(plot, at: 101)[9]?.mean == 1)
    Self.feed(&plot, "rpm", .int(1), at: 101)
    let names = plot.plot(at: 101, zone: .utc, columns: 9).panels.flatMap(\.series).map(\.name)
    #expect(names == ["ev.rpm", "ev.charging"], "in the order of their declaration")
    var other = try Self.live("charging")
    Self.feed(&other, "rpm", .int(1), at: 100)
    #expect(Self.values(other, at: 101).isEmpty)
  }

  @Test func `keys change the shown time within limits, and freeze it`() throws {
    var plot = try Self.live("rpm", span: 45)
    plot.zoom(1)
    #expect(plot.span == 60)
    plot.zoom(99)
    #expect(plot.span == 3600)
    plot.zoom(-99)
    #expect(plot.span == 10)
    Self.feed(&plot, "rpm", .int(7), at: 100)
    plot.toggleFrozen(at: 102)
    #expect(Self.values(plot, at: 500)[9]?.mean == 7)
    #expect(plot.frame(columns: 60, rows: 8, now: 500, zone: .utc).line(7).hasSuffix("FROZEN  10 s"))
    plot.toggleFrozen(at: 500)
    #expect(plot.frozenAt == nil)
  }

  @Test func `old values are dropped, but not the one that is valid`() throws {
    var plot = try Self.live("rpm", span: 3600)
    for second in 0..<10_000 { Self.feed(&plot, "rpm", .int(second % 100), at: Double(second)) }
    #expect(Self.values(plot, at: 9999, columns: 100).count == 100)
  }

  @Test func `the program plots on a terminal and restores it`() throws {
    let schema = Self.schema
    let server = try SocketServer { connection, method, _ in
      if method == Contract.Describe.name { return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [schema]))) }
      let now = Clock.wall
      let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [Self.reading("rpm", .int(3308), at: now)])
      SocketServer.send(connection, VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: [ev]), continues: true))
      return .nothing
    }
    defer { server.stop() }
    let pty = try PTY()
    let pid = try Program.start(["watch", "--plot", "rpm", "--last", "30s", "--socket", server.path], on: pty)
    var talk = Conversation(pty)
    talk.when("ev.rpm rpm", type: "-")
    talk.when("1 min", type: " ")
    talk.when("FROZEN", type: "q")
    #expect(talk.end(of: pid) == 0 && !pty.isRaw && talk.shown.contains("\u{1b}[?1049l"))
    for wrong in [["watch", "--plot"], ["watch", "--plot", "rpm", "--last", "2h"]] {
      #expect(try Program.run(wrong + ["--socket", server.path]).status == 2)
    }
  }
}
