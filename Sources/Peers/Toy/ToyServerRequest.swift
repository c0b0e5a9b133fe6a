// The HTTP requests of the toy and its parsing of replies, with the defects of the firmware: double spaces, bytes from beyond its buffer,
// and facts read from the header. Source: microprocessor.ino of neils95/Trivio.

import Protocols

/// A request of the toy, sent on its own connection.
enum ToyServerRequest: Sendable, Equatable {
  /// Downloads a new fact, after a throw or as a retry.
  case fetch(isRetry: Bool)
  /// Reports the current play.
  case reportOne
  /// Reports this number of earlier plays.
  case report(Int)

  private static let afterPath = " HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"
  /// The size of the buffer for the report of plays. The firmware does not terminate the text in it, so random bytes are sent too.
  private static let bufferSize = 100

  /// The bytes of the request for this user, including random ones from beyond the buffer.
  func request(user: String, random: inout SeededRandom) -> [UInt8] {
    switch self {
    case .fetch: Array("GET /Trivia/\(user) \(Self.afterPath)".utf8)
    case .reportOne: Array("GET /User/History/\(user)/1\(Self.afterPath)".utf8)
    case .report(let plays):
      Array("GET /User/History/\(user)/\(plays)\(Self.afterPath)".utf8)
        + (0..<Int.random(in: 1...12, using: &random)).map { _ in UInt8.random(in: 1...255, using: &random) }
    }
  }

  /// The number of bytes by which the request overflows its buffer.
  func overflow(user: String) -> Int {
    guard case .report(let plays) = self else { return 0 }
    return max(0, "GET /User/History/\(user)/\(plays)\(Self.afterPath)".utf8.count - Self.bufferSize)
  }
}

/// A reply as parsed by the toy, which reads a single packet.
struct ToyServerReply: Sendable, Equatable {
  /// The size of the receive buffer.
  static let maxLength = 1024

  /// Whether the reply begins with the expected status line.
  var isOK: Bool
  /// All bytes between double quotes, in header or body.
  var fact: [UInt8]
  /// The number of bytes that do not fit into the receive buffer.
  var lostByteCount: Int

  init(packet: [UInt8]) {
    let received = packet.prefix(Self.maxLength)
    isOK = received.starts(with: "HTTP/1.1 200 OK".utf8)
    lostByteCount = packet.count - received.count
    var isInside = false
    fact = received.filter { byte in
      if byte == 0x22 { isInside.toggle() }
      return isInside && byte != 0x22
    }
  }
}
