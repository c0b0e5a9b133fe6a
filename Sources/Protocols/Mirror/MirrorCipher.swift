// How a message becomes one GATT write: the end mark, AES-128-CBC with the same key and IV every time, and hex digits. It must
// never tell what the key is, not even where it is wrong.
// Facts: ISM-App's BLE.swift and ISM-Embedded's main.cpp: '+' ends the text, the padding is PKCS#7 and nobody looks at it, the
// value is lower-case hex. Firmware of March 2024 took the text as it is (`plain`).

import CryptoExtras

/// A mirror's key and initialization vector. It describes itself without telling.
public struct MirrorCipher: Sendable, CustomStringConvertible, CustomReflectable {
  /// The ESP32 always decrypts this much, and finds the end mark in it.
  static let maxTextLength = 63
  static let endMark = UInt8(ascii: "+")

  let key: SymmetricKey
  let iv: [UInt8]

  public var description: String { "(a secret key)" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }

  /// A cipher of these, 16 bytes each; nil where they are not.
  public init?(key: [UInt8], iv: [UInt8]) {
    guard key.count == 16, iv.count == 16 else { return nil }
    (self.key, self.iv) = (SymmetricKey(data: key), iv)
  }

  /// The value to be written for a text, or why the mirror would not survive it.
  public func seal(_ text: [UInt8]) throws(ValueError) -> [UInt8] {
    guard text.count <= Self.maxTextLength else {
      throw ValueError("\(text.count) bytes are too long: the mirror finds the end of \(Self.maxTextLength) at the most")
    }
    guard !text.contains(Self.endMark) else { throw ValueError("a + in a message ends it") }
    do {
      return Self.hex(try AES._CBC.encrypt(text + [Self.endMark], using: key, iv: try AES._CBC.IV(ivBytes: iv)))
    } catch {
      throw ValueError("the message cannot be encrypted: \(error)")
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

  /// Reads `ascii:` and 16 characters, or `hex:` and 32 digits, or says what is wrong without telling what is there.
  public static func sixteen(_ secret: [UInt8]) throws(ValueError) -> [UInt8] {
    let (ascii, hex) = (Array("ascii:".utf8), Array("hex:".utf8))
    if secret.starts(with: ascii) {
      let rest = secret.dropFirst(ascii.count)
      guard rest.count == 16, rest.allSatisfy({ $0 < 0x80 }) else {
        throw ValueError("behind ascii: stand \(rest.count) bytes; write exactly 16 ASCII characters, as in the firmware")
      }
      return Array(rest)
    }
    guard secret.starts(with: hex) else {
      throw ValueError("it begins neither with ascii: nor with hex:; write ascii: and 16 characters, or hex: and 32 digits")
    }
    let rest = Array(secret.dropFirst(hex.count))
    guard rest.count == 32, rest.allSatisfy(isHexDigit) else {
      throw ValueError("behind hex: stand \(rest.count) characters; write exactly 32 digits, 0 to 9 and a to f")
    }
    return stride(from: 0, to: 32, by: 2).map { hexValue(rest[$0]) << 4 | hexValue(rest[$0 + 1]) }
  }
}

/// What stands between a message and the air.
public enum MirrorProfile: Sendable {
  /// As the published firmware.
  case stock(MirrorCipher)
  /// As the firmware before it, which encrypted nothing.
  case plain

  /// The value to be written: one GATT write.
  public func write(_ message: MirrorMessage) -> [UInt8] {
    switch self {
    case .plain: return message.text
    case .stock(let cipher):
      // No message is longer than 40 bytes, or holds an end mark.
      guard let value = try? cipher.seal(message.text) else { preconditionFailure("a message that cannot be encrypted") }
      return value
    }
  }
}
