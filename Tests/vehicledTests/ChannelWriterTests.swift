import CLinux
import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import vehicled

@Suite struct ChannelWriterTests {
  /// A writer on one end of a new pair of sockets, its channel, and the other end.
  @Loop private func pair() async throws -> (writer: ChannelWriter, channel: any Channel, other: CInt) {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let channel = try await ClientBootstrap(group: Loop.group).withConnectedSocket(ends[0]).get()
    return (ChannelWriter(channel), channel, ends[1])
  }

  @Loop private func read(_ descriptor: CInt, _ maxCount: Int = 1 << 16) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: maxCount)
    let count = Glibc.read(descriptor, &bytes, maxCount)
    return Array(bytes.prefix(max(count, 0)))
  }

  @Test("A write that the kernel accepts completes at once and arrives in one read")
  func atOnce() async throws {
    try await Task { @Loop in
      let (writer, channel, other) = try await pair()
      var results: [String?] = []
      writer.write(Array("2201019\r".utf8)) { results.append($0) }
      #expect(results == [nil])
      #expect(read(other) == Array("2201019\r".utf8))
      try await channel.close().get()
      close(other)
    }.value
  }

  @Test("Messages keep their order when the peer reads slowly, and each completes once")
  func slowReader() async throws {
    try await Task { @Loop in
      let (writer, channel, other) = try await pair()
      var completed = 0
      var sent: [UInt8] = []
      for number in 0..<400 {
        let message = [UInt8](repeating: UInt8(number % 251), count: 1 + number * 7)
        sent += message
        writer.write(message) { failure in
          #expect(failure == nil)
          completed += 1
        }
      }
      #expect(completed < 400 && !writer.hasRoom)
      var received: [UInt8] = []
      #expect(
        await until {
          received += read(other, 5000)
          return received.count >= sent.count
        })
      let isSame = received == sent
      #expect(isSame)
      #expect(await until { completed == 400 && writer.hasRoom })
      // The queue is empty: the next message is written directly again.
      writer.write([1]) { _ in completed += 1 }
      #expect(completed == 401 && read(other) == [1])
      try await channel.close().get()
      close(other)
    }.value
  }

  @Test("A write to a closed peer or channel fails and never reaches a reused descriptor")
  func dead() async throws {
    try await Task { @Loop in
      let (writer, channel, other) = try await pair()
      close(other)
      var results: [String?] = []
      writer.write([1]) { results.append($0) }
      #expect(await until { !results.isEmpty && !channel.isActive })
      // The descriptor's number may belong to another file by now.
      var ends: [CInt] = [-1, -1]
      #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
      writer.write([2]) { results.append($0) }
      #expect(results.count == 2 && results.allSatisfy { $0 != nil })
      #expect(read(ends[0]).isEmpty && read(ends[1]).isEmpty)
      ends.forEach { close($0) }
    }.value
  }
}
