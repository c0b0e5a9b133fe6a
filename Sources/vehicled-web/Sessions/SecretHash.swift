// Hashes of cookies and tokens, by which sessions are found and stored. All of these have at least 128 random bits, or are as hard to guess
// as the token that the administrator has chosen, so a plain SHA-256 suffices.

import Cryptography
import Protocols

struct SecretHash: Hashable, Sendable {
  /// 64 lower-case hex digits.
  let text: String

  /// Call `Cryptography.load` before.
  init(of secret: some Sequence<UInt8>) {
    let digits = Array("0123456789abcdef".utf8)
    guard let hash = try? SHA256.hash(Array(secret)) else { preconditionFailure("OpenSSL is not loaded") }
    text = String(decoding: hash.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  /// Parses a stored hash; nil if it is not one.
  init?(stored text: String) {
    guard text.utf8.count == 64, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }) else { return nil }
    self.text = text
  }
}
