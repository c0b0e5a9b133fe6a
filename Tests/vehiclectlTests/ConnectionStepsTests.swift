// The steps of a connection: which lines follow from which replies of Watch, and when it is finished.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ConnectionStepsTests {
  private static let schema = Contract.Schema(
    device: "car", kind: "obd",
    Schema(properties: [
      Property("rpm", .int, group: .drive, rank: .headline, help: ""), Property("adapter", .string, group: .adapter, rank: .main, help: ""),
      Property("vehicle", .string, group: .identity, rank: .main, help: ""),
      Property("poll-rate", .float, unit: "Hz", group: .statistics, rank: .detail, help: ""),
    ]))

  private func link(_ state: String, _ reason: String? = nil, next: Int? = nil, details: [String: String]? = nil) -> Contract.Link {
    Contract.Link(name: "main", url: "ble:Veepeak", state: state, reason: reason, since: 0, nextAttempt: next, details: details)
  }

  private func snapshot(
    _ link: Contract.Link, state: String = "starting", fault: String? = nil, _ values: [String: Value] = [:]
  ) -> Contract.Watch.Result {
    let readings = values.map { Contract.Reading(device: "car", property: $0, value: $1, unit: $0 == "poll-rate" ? "Hz" : nil) }
    return .init(sequence: 0, snapshot: [.init(name: "car", kind: "obd", state: state, links: [link], readings: readings, fault: fault)])
  }

  private func change(_ property: String, _ value: Value, unit: String? = nil, device: String = "car") -> Contract.Watch.Result {
    .init(sequence: 1, changes: [.init(device: device, property: property, value: value, unit: unit)])
  }

  @Test func `each step is one line, from the search to the poll rate`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    #expect(steps.apply(snapshot(link("connecting", "searching for \"Veepeak\"")), at: 0) == ["searching for \"Veepeak\""])
    #expect(steps.apply(snapshot(link("connecting", "searching for \"Veepeak\"", details: ["searching": "1 s"])), at: 1).isEmpty)
    #expect(steps.outcome(at: 50) == .waiting, "the search may take long")
    let up = link("up", details: ["signal": "-60 dBm when found", "mtu": "185"])
    #expect(steps.apply(snapshot(up), at: 2) == ["connected, -60 dBm, MTU 185"])
    #expect(steps.apply(change("adapter", .string("ELM327 v1.5")), at: 3) == ["ELM327 v1.5"])
    #expect(steps.apply(change("adapter", .string("ELM327 v1.5")), at: 3).isEmpty)
    #expect(steps.apply(change("rpm", .int(9), device: "other"), at: 3).isEmpty)
    #expect(steps.apply(change("vehicle", .string("E-GMP")), at: 4) == ["E-GMP"])
    #expect(steps.outcome(at: 4) == .waiting)
    #expect(steps.apply(change("rpm", .int(900)), at: 5).isEmpty)
    #expect(steps.outcome(at: 5) == .waiting, "the poll rate is missing")
    #expect(steps.apply(change("poll-rate", .float(8.6), unit: "Hz"), at: 6).isEmpty, "the rate still rises")
    #expect(steps.apply(change("poll-rate", .float(19.8), unit: "Hz"), at: 7).isEmpty)
    #expect(steps.outcome(at: 7) == .waiting)
    #expect(steps.apply(change("poll-rate", .float(20), unit: "Hz"), at: 8) == ["20 Hz"])
    #expect(steps.apply(change("poll-rate", .float(19.9), unit: "Hz"), at: 9).isEmpty && steps.finish().isEmpty)
    #expect(steps.outcome(at: 9) == .hasValues && steps.firstValues.map(\.property) == ["rpm"])
  }

  @Test func `a value without the other steps is enough after some time`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    _ = steps.apply(snapshot(link("up"), ["rpm": .int(0)]), at: 1)
    _ = steps.apply(change("poll-rate", .float(12), unit: "Hz"), at: 1)
    #expect(steps.finish() == ["12 Hz"], "a rate that is not steady comes last")
    #expect(steps.outcome(at: 1.5) == .waiting && steps.outcome(at: 1 + ConnectionSteps.settleTime) == .hasValues)
  }

  @Test func `values that a device keeps do not count while its link is down`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    #expect(steps.apply(snapshot(link("down", "no route"), ["rpm": .int(0), "vehicle": .string("E-GMP")]), at: 0) == ["no route"])
    #expect(steps.outcome(at: 100) == .waiting)
  }

  @Test func `the obstacle has the reason and the next attempt`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    #expect(steps.obstacle(wall: 0) != nil)
    _ = steps.apply(snapshot(link("down", "connection refused", next: 8_000_000)), at: 0)
    #expect(steps.obstacle(wall: 3) == "connection refused; next attempt in 5.0 s")
    _ = steps.apply(snapshot(link("connecting")), at: 0)
    #expect(steps.obstacle(wall: 3) == "connecting to ble:Veepeak")
    _ = steps.apply(snapshot(link("up")), at: 0)
    #expect(steps.obstacle(wall: 3) == nil)
  }

  @Test func `after a lost link the steps are reported again`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    _ = steps.apply(snapshot(link("up"), ["adapter": .string("ELM327 v1.5")]), at: 0)
    #expect(steps.apply(snapshot(link("down", "connection lost")), at: 1) == ["connection lost"])
    #expect(steps.apply(snapshot(link("up"), ["adapter": .string("ELM327 v1.5")]), at: 2) == ["connected", "ELM327 v1.5"])
  }

  @Test func `a connected device without progress is idle, and its fault is a step`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    _ = steps.apply(snapshot(link("up")), at: 1)
    #expect(steps.apply(snapshot(link("up"), state: "car-asleep", fault: "the car sleeps"), at: 10) == ["the car sleeps"])
    #expect(steps.outcome(at: 20) == .waiting && steps.outcome(at: 10 + ConnectionSteps.idleTime) == .idle)
  }

  @Test func `a removed device ends it, one that returns does not`() {
    var steps = ConnectionSteps(Self.schema, at: 0)
    let removed = Contract.Event(device: "car", name: Contract.Event.removed, text: "", time: 0)
    _ = steps.apply(.init(sequence: 0, events: [removed]), at: 0)
    #expect(steps.outcome(at: 0) == .removed)
    _ = steps.apply(snapshot(link("down", "x")), at: 1)
    #expect(steps.outcome(at: 1) == .waiting)
  }
}
