// Secrets that grant access: those of links and sessions are random, those of kiosks and Prometheus are in files.

import Cryptography
import Protocols

struct Token: Sendable {
  /// The minimum length of a token in a file, in bytes: 128 bits in base64 without padding.
  static let minLength = 22

  private let secret: SecretBytes

  init(_ secret: SecretBytes) { self.secret = secret }

  /// 128 random bits of the kernel, in hex digits.
  static func random() -> Token {
    let digits = (0..<2).map { _ in
      let text = String(UInt64.random(in: 0 ... .max), radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
    return Token(SecretBytes(Array(digits.joined().utf8)))
  }

  /// The text, for the link or the cookie that carries it.
  var text: String { String(decoding: secret.bytes, as: UTF8.self) }

  var hash: SecretHash { SecretHash(of: secret.bytes) }

  /// Whether the texts are equal. The time depends only on their lengths, so that measuring it does not reveal how much is right.
  func matches(_ given: String) -> Bool {
    Cryptography.areEqual(Array(given.utf8), secret.bytes)
  }
}
