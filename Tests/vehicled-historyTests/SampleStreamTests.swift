// The samples that the method Samples streams: in chronological order across series, blocks and replies.

import Foundation
import HistoryStore
import Protocols
import SampleBlocks
import Testing

@testable import vehicled_history

@Suite struct SampleStreamTests {
  @Test(arguments: [false, true]) func `samples of several series are in chronological order`(isMerged: Bool) throws {
    let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let (store, second) = (try HistoryStore(directory: path), Int64(1_000_000))
    let boot = try store.boot("one", offset: 0)
    var batches = BatchBuilder(device: "ev", at: 0)
    let keys = ["speed", "rpm", "odometer"].map { SeriesKey(device: "ev", property: $0, type: .int) }
    for step in Int64(0)..<3000 {
      for (index, key) in keys.enumerated() where step % Int64(1 + index) == 0 {
        batches.append(.value(.int(Int(step))), of: key, at: step * second + Int64(index), now: step * second)
      }
      // Every 1000 s nothing is recorded for a while.
      if step % 1000 == 999 {
        if let batch = batches.cut(at: step * second) { _ = try store.append(batch, boot: boot) }
        batches = BatchBuilder(device: "ev", at: (step + 1) * second)
      }
    }
    if isMerged { try store.compact() }
    let range = 100 * second...2500 * second
    var stream = try SampleStream(store.reader, device: "ev", series: store.reader.series(of: "ev"), in: range, span: store.reader.span())
    var times: [Int] = []
    var gaps = 0
    while let reply = try stream.next() {
      times += (reply.samples ?? []).map(\.time)
      gaps += (reply.samples ?? []).count { $0.reason == "not recorded" }
    }
    #expect(times.count > SampleStream.count && times == times.sorted())
    #expect(gaps == 2 * keys.count)
  }
}
