// Encodes a message as the value of one GATT write: terminator, AES-128-CBC with a constant key and IV, and hex digits. No error message
// may reveal a key, even an invalid one.
// Source: ISM-App's BLE.swift and ISM-Embedded's main.cpp: '+' ends the text, the PKCS#7 padding is not checked, the value is
// lower-case hex. The firmware of March 2024 expects plain text (`plain`).

import Cryptography

/// A mirror's key and initialization vector. `description` does not contain them.
public struct MirrorCipher: Sendable, CustomStringConvertible, CustomReflectable {
  /// The maximum length of a text in bytes: the ESP32 always decrypts 64 bytes, which must include the terminator.
  static let maxTextLength = 63
  static let terminator = UInt8(ascii: "+")

  let key: [UInt8]
  let iv: [UInt8]

  public var description: String { "(redacted)" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Creates a cipher. Throws unless key and IV have 16 bytes each, and OpenSSL is installed.
  public init(key: [UInt8], iv: [UInt8]) throws(ValueError) {
    guard key.count == 16, iv.count == 16 else { throw ValueError("key and IV must have 16 bytes each") }
    do { try Cryptography.load() } catch { throw ValueError("cannot encrypt: \(error)") }
    (self.key, self.iv) = (key, iv)
  }

  /// Encrypts a text; returns the value of a GATT write. Throws if the text is too long or contains the terminator.
  public func seal(_ text: [UInt8]) throws(ValueError) -> [UInt8] {
    guard text.count <= Self.maxTextLength else {
      throw ValueError("message of \(text.count) bytes is too long: the mirror accepts at most \(Self.maxTextLength)")
    }
    guard !text.contains(Self.terminator) else { throw ValueError("a message must not contain +") }
    do {
      return Self.hex(try AES128CBC.encrypt(text + [Self.terminator], key: key, iv: iv))
    } catch {
      throw ValueError("cannot encrypt the message: \(error)")
    }
  }

  private static let digits = Array("0123456789abcdef".utf8)

  private static func hex(_ bytes: some Sequence<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(160)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return text
  }

  /// Parses the text of a key or IV: `ascii:` and 16 characters, or `hex:` and 32 digits. Errors do not quote the text.
  public static func sixteenBytes(_ secret: [UInt8]) throws(ValueError) -> [UInt8] {
    let (ascii, hex) = (Array("ascii:".utf8), Array("hex:".utf8))
    if secret.starts(with: ascii) {
      let rest = secret.dropFirst(ascii.count)
      guard rest.count == 16, rest.allSatisfy({ $0 < 0x80 }) else {
        throw ValueError("\"ascii:\" must be followed by exactly 16 ASCII characters; found \(rest.count) bytes")
      }
      return Array(rest)
    }
    guard secret.starts(with: hex) else {
      throw ValueError("must start with ascii: or hex:; write ascii: and 16 characters, or hex: and 32 digits")
    }
    let rest = Array(secret.dropFirst(hex.count))
    guard rest.count == 32, rest.allSatisfy(isHexDigit) else {
      throw ValueError("\"hex:\" must be followed by exactly 32 digits (0 to 9, a to f); found \(rest.count) bytes")
    }
    return stride(from: 0, to: 32, by: 2).map { hexValue(rest[$0]) << 4 | hexValue(rest[$0 + 1]) }
  }
}

/// The encoding of messages.
public enum MirrorProfile: Sendable {
  /// Firmware released after 1 April 2024, with encryption.
  case stock(MirrorCipher)
  /// The firmware of March 2024, without encryption.
  case plain

  /// The value of one GATT write.
  public func encode(_ message: MirrorMessage) -> [UInt8] {
    switch self {
    case .plain: return message.text
    case .stock(let cipher):
      // No message is longer than 40 bytes or contains a terminator.
      guard let value = try? cipher.seal(message.text) else { preconditionFailure("a message cannot be encrypted") }
      return value
    }
  }
}
