// Framing: split messages, limits and memory use.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct FramingTests {
  let messages = [#"{"method":"a.B"}"#, "", #"{"method":"c.D","parameters":{"x":"ü"}}"#]
  var stream: [UInt8] { messages.flatMap { Array($0.utf8) + [0] } }

  @Test func `messages are complete at every split point`() throws {
    for first in 0...stream.count {
      for second in first...stream.count {
        var framing = VarlinkFraming()
        var found: [String] = []
        for part in [stream[..<first], stream[first..<second], stream[second...]] {
          framing.append(part)
          while let message = try framing.next() { found.append(String(decoding: message, as: UTF8.self)) }
        }
        #expect(found == messages)
        #expect(framing.pending == 0)
      }
    }
  }

  @Test func `a message of the maximum size is accepted, and one byte more is rejected`() throws {
    var framing = VarlinkFraming()
    framing.append([UInt8](repeating: 32, count: VarlinkFraming.callLimit))
    #expect(try framing.next() == nil)
    framing.append([0])
    #expect(try framing.next()?.count == VarlinkFraming.callLimit)
    framing.append([UInt8](repeating: 32, count: VarlinkFraming.callLimit + 1))
    #expect(throws: VarlinkFraming.TooLong()) { try framing.next() }
  }

  @Test func `a long message in small parts is scanned once`() throws {
    var framing = VarlinkFraming()
    let part = [UInt8](repeating: 32, count: 64)
    var early = 0
    let time = try cpuTime {
      for _ in 0..<VarlinkFraming.callLimit / 64 {
        framing.append(part)
        if try framing.next() != nil { early += 1 }
      }
    }
    #expect(early == 0)
    #expect(time < .seconds(5))  // scanning again with each part would take minutes
  }

  @Test func `memory is released when no bytes are pending`() throws {
    var framing = VarlinkFraming()
    framing.append([UInt8](repeating: 32, count: 100_000) + [0])
    _ = try framing.next()
    #expect(framing.capacity == 0)
    framing.append([UInt8](repeating: 32, count: 100) + [0])
    _ = try framing.next()
    #expect((1...VarlinkFraming.idleCapacity).contains(framing.capacity))
  }

  @Test func `a backlog is read without moving every message`() throws {
    var framing = VarlinkFraming()
    for _ in 0..<1000 { framing.append(stream) }
    var count = 0
    while try framing.next({ $0.count }) != nil {
      count += 1
      if count % 7 == 0 { framing.append(stream[..<0]) }
    }
    #expect(count == 3000)
  }
}
