// What a toy asks a web server for, byte for byte, and how it reads the answer. It must never be a better client than the toy:
// two spaces where it has two, what lies behind its buffer, a fact out of the headers.
// Facts: protocols of the toy, §C.

import Protocols

/// One thing that a toy wants of the server, for which it opens one connection.
enum ToyServerRequest: Sendable, Equatable {
  /// A new fact, after a throw or because it is owed.
  case fetch(isOwed: Bool)
  /// One play, just now.
  case reportOne
  /// Plays that were not reported.
  case report(Int)

  private static let rest = " HTTP/1.1\r\nHost: triviotoy.azurewebsites.net\r\nConnection: keep-alive\r\n\r\n"
  /// Where it puts together the report of plays, without a mark for its end.
  private static let buffer = 100

  /// The request for this user, and what lies behind it in memory.
  func request(user: String, noise: inout Noise) -> [UInt8] {
    switch self {
    case .fetch: Array("GET /Trivia/\(user) \(Self.rest)".utf8)
    case .reportOne: Array("GET /User/History/\(user)/1\(Self.rest)".utf8)
    case .report(let plays):
      Array("GET /User/History/\(user)/\(plays)\(Self.rest)".utf8)
        + (0..<Int.random(in: 1...12, using: &noise)).map { _ in UInt8.random(in: 1...255, using: &noise) }
    }
  }

  /// By how many bytes the request overflows the buffer that it is put together in.
  func overflow(user: String) -> Int {
    guard case .report(let plays) = self else { return 0 }
    return max(0, "GET /User/History/\(user)/\(plays)\(Self.rest)".utf8.count - Self.buffer)
  }
}

/// What a toy makes of the one packet that it reads.
struct ToyServerReply: Sendable, Equatable {
  /// The buffer for it.
  static let longest = 1024

  /// It begins as an answer should.
  var isOK: Bool
  /// Every byte between double quotes, wherever they stand.
  var fact: [UInt8]
  /// Bytes that were lost.
  var excess: Int

  init(packet: [UInt8]) {
    let kept = packet.prefix(Self.longest)
    isOK = kept.starts(with: "HTTP/1.1 200 OK".utf8)
    excess = packet.count - kept.count
    var isInside = false
    fact = kept.filter { byte in
      if byte == 0x22 { isInside.toggle() }
      return isInside && byte != 0x22
    }
  }
}
