// The latest log records in memory.

import Logging
import ServiceRuntime
import Testing

@testable import vehicled

@Suite("Log ring") struct LogRingTests {
  private func record(_ message: String) -> LogRing.Record {
    LogRing.Record(wall: 1, level: .info, device: "ev", link: nil, message: message, details: [:])
  }

  @Test func `the oldest records are dropped beyond 500 records or 64 kB`() {
    let ring = LogRing()
    for number in 1...700 { ring.append(record("\(number)")) }
    #expect(ring.records.count == 500 && ring.records.first?.message == "201" && ring.records.last?.message == "700")
    let long = String(repeating: "x", count: 4096)
    for _ in 0..<100 { ring.append(record(long)) }
    #expect((10...15).contains(ring.records.count) && ring.records.allSatisfy { $0.message == long })
  }

  @Test func `observers get new records until they are removed`() async {
    let ring = LogRing()
    ring.append(record("before"))
    let (stream, continuation) = AsyncStream.makeStream(of: String.self)
    let first = await ring.observe { continuation.yield($0.message) }
    let second = await ring.observe { _ in }
    ring.append(record("one"))
    ring.append(record("two"))
    var messages = stream.makeAsyncIterator()
    #expect(await messages.next() == "one")
    #expect(await messages.next() == "two")
    await ring.remove(first)
    ring.append(record("three"))
    await ring.remove(second)
    continuation.finish()
    #expect(await messages.next() == nil && ring.records.count == 4)
  }
}
