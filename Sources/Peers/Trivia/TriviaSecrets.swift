// Hashes of passwords and tokens. The caller passes random bytes for salts and tokens, because Peers has no source of randomness.
// Source: RFC 7914 (scrypt).

import Cryptography
import Protocols

/// A password hash: salted scrypt.
public struct TriviaPassword: Sendable, CustomStringConvertible, CustomReflectable {
  /// scrypt's N: 16 MiB of memory and about 100 ms per guess.
  public static let defaultRounds = 16_384
  public static let saltSize = 16
  private static let blockSize = 8
  private static let keySize = 32

  private let rounds: Int
  private let salt: [UInt8]
  private let key: [UInt8]

  public var description: String { "(a hashed password)" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Hashes a password. `rounds` is scrypt's N: a power of two, up to 16384.
  public init(_ password: String, salt: [UInt8], rounds: Int = TriviaPassword.defaultRounds) throws(ValueError) {
    (self.rounds, self.salt, key) = (rounds, salt, try Self.key(password, salt, rounds))
  }

  /// Whether this is the password. The comparison takes constant time.
  public func matches(_ password: String) -> Bool {
    (try? Self.key(password, salt, rounds)).map { Cryptography.areEqual($0, key) } ?? false
  }

  private static func key(_ password: String, _ salt: [UInt8], _ rounds: Int) throws(ValueError) -> [UInt8] {
    guard (2...defaultRounds).contains(rounds), rounds & (rounds - 1) == 0 else {
      throw ValueError("invalid number of scrypt rounds: use a power of two from 2 to \(defaultRounds)")
    }
    do {
      return try Scrypt.key(Array(password.utf8), salt: salt, rounds: rounds, blockSize: blockSize, count: keySize)
    } catch {
      throw ValueError("cannot hash the password: \(error)")
    }
  }

  /// The stored form, `scrypt:ROUNDS:SALT:KEY`, in hex.
  public var text: String { "scrypt:\(rounds):\(Hex.text(salt)):\(Hex.text(key))" }

  /// Parses the stored form.
  public init?(text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0] == "scrypt", let rounds = Int(parts[1]), let salt = Hex.bytes(parts[2]),
      let key = Hex.bytes(parts[3]), key.count == Self.keySize
    else { return nil }
    (self.rounds, self.salt, self.key) = (rounds, salt, key)
  }
}

/// The token that an app sends after login.
enum TriviaToken {
  /// The size in bytes: 128 bits.
  static let size = 16

  static func text(_ bytes: [UInt8]) -> String { Hex.text(bytes) }

  /// The hash to store. Tokens are random, so they require neither salt nor rounds.
  static func hash(_ text: String) throws(ValueError) -> String {
    do { return Hex.text(try SHA256.hash(Array(text.utf8))) } catch { throw ValueError("cannot hash the token: \(error)") }
  }
}

/// Bytes as lower-case hex digits.
private enum Hex {
  private static let digits = Array("0123456789abcdef".utf8)

  static func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    let nibbles = text.utf8.compactMap { digits.firstIndex(of: $0) }
    guard nibbles.count == text.utf8.count, nibbles.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: nibbles.count, by: 2).map { UInt8(nibbles[$0] << 4 | nibbles[$0 + 1]) }
  }
}
