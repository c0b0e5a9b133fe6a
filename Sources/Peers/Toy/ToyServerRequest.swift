// The HTTP requests of the toy and its parsing of replies, with the defects of the firmware: double spaces, bytes after its buffer, facts
// read from the header. Facts: protocols of the toy, §C.

import Protocols

/// A request of the toy, sent on its own connection.
enum ToyServerRequest: Sendable, Equatable {
  /// Downloads a new fact, after a throw or as a retry.
  case fetch(isRetry: Bool)
  /// Reports the current play.
  case reportOne
  /// Reports earlier plays.
  case report(Int)

  private static let rest = " HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"
  /// The size of the buffer for the report of plays, which is not terminated.
  private static let buffer = 100

  /// The bytes of the request for this user, including those after the buffer.
  func request(user: String, noise: inout Noise) -> [UInt8] {
    switch self {
    case .fetch: Array("GET /Trivia/\(user) \(Self.rest)".utf8)
    case .reportOne: Array("GET /User/History/\(user)/1\(Self.rest)".utf8)
    case .report(let plays):
      Array("GET /User/History/\(user)/\(plays)\(Self.rest)".utf8)
        + (0..<Int.random(in: 1...12, using: &noise)).map { _ in UInt8.random(in: 1...255, using: &noise) }
    }
  }

  /// The number of bytes by which the request overflows its buffer.
  func overflow(user: String) -> Int {
    guard case .report(let plays) = self else { return 0 }
    return max(0, "GET /User/History/\(user)/\(plays)\(Self.rest)".utf8.count - Self.buffer)
  }
}

/// A reply as parsed by the toy, which reads a single packet.
struct ToyServerReply: Sendable, Equatable {
  /// The size of the receive buffer.
  static let maxLength = 1024

  /// The reply begins with the expected status line.
  var isOK: Bool
  /// All bytes between double quotes, in header or body.
  var fact: [UInt8]
  /// The number of lost bytes.
  var excess: Int

  init(packet: [UInt8]) {
    let kept = packet.prefix(Self.maxLength)
    isOK = kept.starts(with: "HTTP/1.1 200 OK".utf8)
    excess = packet.count - kept.count
    var isInside = false
    fact = kept.filter { byte in
      if byte == 0x22 { isInside.toggle() }
      return isInside && byte != 0x22
    }
  }
}
