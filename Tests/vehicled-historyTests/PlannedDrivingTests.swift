// A week of planned driving through the whole path: the machine and the simulated car in virtual time, import, merging, detection. The trips
// and charges that are found are those of the plan.

import Foundation
import HistoryStore
import Peers
import Protocols
import SampleBlocks
import Testing
import Trips

@testable import vehicled_history

@Suite struct PlannedDrivingTests {
  @Test func `a week has exactly the trips and charges of its plan`() throws {
    let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try HistoryStore(directory: path)
    let plan = DrivingPlan(days: 7, seed: 14)
    var recording = try PlannedRecording(PlannedCar(plan, seed: 14), rate: 1, seed: 14)
    var assembler = BlockAssembler()
    func add(_ block: BlockAssembler.Assembled?) throws {
      guard let block else { return }
      let series = recording.series.enumerated().map { index, one in
        (index, SeriesKey(device: "ev", property: one.property, type: one.type, unit: one.unit))
      }
      let imported = ImportedBlock(
        device: "ev", source: "plan", series: Dictionary(uniqueKeysWithValues: series), block: try Block(block.bytes),
        continues: block.continues)
      #expect(try store.add(imported) > 0)
    }
    for sample in recording.run(until: plan.length) {
      try add(try assembler.append(sample.content, series: sample.series, at: sample.time / 1000))
    }
    try add(assembler.flush(until: plan.length / 1000))
    try store.compact()
    #expect(try store.reader.check().damage == [])

    var replay = PeriodReplay(rules: PeriodRules())
    try replay.read(store.reader, device: "ev", in: .min ... .max)
    let found = replay.finish(at: plan.length / 1000)
    let trips = found.filter { $0.kind == .trip }
    let charges = found.filter { $0.kind == .charge }
    let planned = (trips: plan.activities.filter(\.isTrip), charges: plan.activities.filter { !$0.isTrip })
    #expect(planned.trips.count >= 12 && planned.charges.count >= 5)
    try #require(trips.count == planned.trips.count && charges.count == planned.charges.count)
    for (trip, plan) in zip(trips, planned.trips) {
      // A parked car is probed every 30 s.
      #expect(abs(trip.start - plan.start / 1000) < 45_000_000 && abs((trip.end ?? 0) - plan.end / 1000) < 45_000_000)
      #expect(trip.marks == [])
    }
    for (charge, plan) in zip(charges, planned.charges) {
      #expect(abs(charge.start - plan.start / 1000) < 90_000_000 && charge.end ?? .max <= plan.end / 1000)
      #expect(charge.marks == [.derived])
      #expect(charge.statistics.charged?.value ?? 0 > 8)
    }
    let distance = trips.reduce(0) { $0 + ($1.statistics.distance?.value ?? 0) }
    #expect(abs(distance - recording.distance) < 0.02 * recording.distance)
  }
}
