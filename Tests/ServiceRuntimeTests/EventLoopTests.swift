// The event loop: timers, descriptors, the order of events, and its end.

import CLinux
import Glibc
import Protocols
import Testing

@testable import ServiceRuntime

private final class Reader: EventSource {
  let file: Int32
  var received: [UInt8] = []
  var order: (String) -> Void = { _ in }

  init(_ file: Int32) { self.file = file }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(POLLIN) }
  override func ready(_ events: Int16, at now: Instant) {
    var byte: UInt8 = 0
    if read(file, &byte, 1) == 1 { received.append(byte) }
    order("ready")
  }
  override func timerFired(at now: Instant) {
    wake = nil
    order("timer")
  }
}

@Suite struct EventLoopTests {
  @Test func `a turn serves descriptors before timers`() throws {
    let loop = try EventLoop(handlesSignals: false)
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { ends.forEach { close($0) } }
    let reader = Reader(ends[0])
    var events: [String] = []
    reader.order = {
      events.append($0)
      if events.count == 3 { loop.stop() }
    }
    reader.wake = 0
    loop.add(reader)
    write(ends[1], "ab", 2)
    try loop.run()
    #expect(events == ["ready", "timer", "ready"] && reader.received == Array("ab".utf8))
  }

  @Test func `a closed source is not served and is removed`() throws {
    let loop = try EventLoop(handlesSignals: false)
    weak var released: Reader?
    do {
      let source = Reader(-1)
      released = source
      source.wake = 0
      source.order = { _ in Issue.record("a closed source was served") }
      source.isClosed = true
      loop.add(source)
    }
    var turns = 0
    #expect(
      try loop.run(until: {
        turns += 1
        return turns > 2
      }))
    #expect(released == nil)
  }
}
