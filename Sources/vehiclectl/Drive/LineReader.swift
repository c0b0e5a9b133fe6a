// Reads lines from a descriptor without blocking, with a bounded buffer.

import Glibc

struct LineReader {
  private let descriptor: Int32
  private var pending: [UInt8] = []
  private(set) var hasEnded = false
  private static let maxLength = 65_536

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Returns the next complete line, or nil if there is none yet.
  mutating func next() throws(Failure) -> String? {
    while true {
      if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
        defer { pending.removeSubrange(...end) }
        return String(decoding: pending[..<end], as: UTF8.self)
      }
      guard !hasEnded, isReady else { return nil }
      guard pending.count < Self.maxLength else {
        throw .usage("invalid input: a line is longer than \(Self.maxLength) bytes; end each line with a newline")
      }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &chunk, chunk.count)
      if count > 0 {
        pending += chunk[..<count]
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        hasEnded = true
        if !pending.isEmpty { pending.append(UInt8(ascii: "\n")) }
      }
    }
  }

  private var isReady: Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }
}
