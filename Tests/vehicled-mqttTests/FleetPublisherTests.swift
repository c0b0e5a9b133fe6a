// What the batches of a fleet contain after the bridge or the daemon was stopped.

import Protocols
import SampleBlocks
import ServiceRuntime
import Testing
import Varlink

@testable import vehicled_mqtt

@Suite("Publishing to a fleet") struct FleetPublisherTests {
  /// A reading of the speed, measured `age` seconds before a time of the wall clock.
  private static func speed(_ value: Int, age: Double, at now: Int64) -> Contract.Reading {
    Contract.Reading(device: "ev", property: "speed", value: .int(value), unit: "km/h", time: Int(now - Int64(age * 1e6)), age: age)
  }

  @Test func `a value ends with its lifetime if what followed was merged`() throws {
    var sent: [OutgoingMessage] = []
    let now = SystemClock.wall
    let publisher = FleetPublisher(
      FleetConfiguration(tenant: "acme"), host: "van-17", watchInterval: 1000, loop: try EventLoop(handlesSignals: false)
    ) { sent += $0 }
    let device = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [Self.speed(5, age: 60, at: now)])
    publisher.apply(Contract.Watch.Result(sequence: 0, snapshot: [device]))
    let property = Property("speed", .int, unit: "km/h", lifetime: .fresh(2 * .second), help: "")
    publisher.describe([Contract.Schema(device: "ev", kind: "obd", Schema(properties: [property]))])
    // Twenty seconds were merged, then nothing arrived for the rest of the minute.
    publisher.apply(Contract.Watch.Result(sequence: 1, changes: [Self.speed(6, age: 40, at: now)]))
    publisher.interrupt()
    let block = try Batch.decode(try #require(sent.first).payload).block
    let samples = try #require(try block.columns().first { $0.count == 4 }?.samples)
    #expect(samples.map(\.content) == [.value(.int(5)), .absent("stale"), .value(.int(6)), .absent("stale")])
    let begin = samples[0].time
    #expect(zip(samples, [0, 2, 20, 22]).allSatisfy { abs($0.time - begin - $1 * 1_000_000) <= 20_000 })
    #expect(block.end > samples[3].time)
  }
}
