// Parses writes like the mirror's ESP32 firmware. Buffer overflows and uncaught exceptions of the firmware are reported as crashes.
// Source: ISM-Embedded's main.cpp: a 100-byte buffer for the hex-decoded message, of which always exactly 64 bytes are decrypted; '+' ends
// the text; the tag's value begins two bytes after the first colon. Earlier firmware reads plain text (`plain`).

import Cryptography

/// The firmware of a mirror.
public enum MirrorFirmware: Sendable {
  /// Encrypted values, with a key and an initialization vector of 16 bytes each.
  case stock(key: [UInt8], iv: [UInt8])
  case plain
}

/// The parser of values that a client writes.
struct ESP32Receiver: Sendable {
  /// The result of a write.
  enum Outcome: Equatable {
    case command(String)
    case pair(tag: String, value: String)
    /// A description of the crash.
    case crash(String)
  }

  /// A fault that crashes the firmware.
  struct Crash: Error { let description: String }

  private static let bufferSize = 100
  private static let decryptedSize = 64
  private static let terminator = UInt8(ascii: "+")

  private let firmware: MirrorFirmware

  init(_ firmware: MirrorFirmware) { self.firmware = firmware }

  func receive(_ value: [UInt8]) -> Outcome {
    switch decrypt(value) {
    case .success(let text): if case .plain = firmware { Self.parse(text[...]) } else { Self.parseTerminated(text) }
    case .failure(let crash): .crash(crash.description)
    }
  }

  /// The content of the buffer after decryption, or the crash that the value causes.
  func decrypt(_ value: [UInt8]) -> Result<[UInt8], Crash> {
    guard case .stock(let key, let iv) = firmware else { return .success(value) }
    guard value.count <= 2 * Self.bufferSize else {
      return .failure(Crash(description: "\(value.count) hex digits overflow a stack buffer of \(Self.bufferSize) bytes"))
    }
    var buffer: [UInt8] = []
    for start in stride(from: 0, to: value.count, by: 2) {
      let pair = value[start..<min(start + 2, value.count)]
      guard let byte = UInt8(String(decoding: pair, as: UTF8.self), radix: 16), !pair.contains(Self.terminator) else {
        return .failure(Crash(description: "\"\(String(decoding: pair, as: UTF8.self))\" is not a hex number: uncaught exception"))
      }
      buffer.append(byte)
    }
    buffer += [UInt8](repeating: 0, count: Self.decryptedSize - min(buffer.count, Self.decryptedSize))
    do throws(CryptographyError) {
      return .success(try AES128CBC.decryptUnpadded(Array(buffer[..<Self.decryptedSize]), key: key, iv: iv))
    } catch {
      return .failure(Crash(description: "\(error)"))
    }
  }

  /// Parses the text before the first terminator.
  static func parseTerminated(_ text: [UInt8]) -> Outcome {
    guard let end = text.firstIndex(of: terminator) else { return .crash("no + in \(text.count) bytes: read beyond the buffer") }
    return parse(text[..<end])
  }

  /// Parses a text without its terminator: a command, or a tag and a value.
  static func parse(_ text: ArraySlice<UInt8>) -> Outcome {
    let whole = latin1(text)
    if whole == "Connected" || whole == "Disconnected" { return .command(whole) }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
      // std::string::npos + 2 overflows to 1, so the value starts at the second byte.
      return text.isEmpty ? .crash("empty text") : .pair(tag: whole, value: latin1(text.dropFirst()))
    }
    let tag = latin1(text[..<colon])
    guard colon + 2 <= text.endIndex else { return .crash("\(tag): no value after the colon: uncaught exception") }
    return .pair(tag: tag, value: latin1(text[(colon + 2)...]))
  }

  /// Decodes Latin-1, as the display does.
  static func latin1(_ bytes: some Sequence<UInt8>) -> String { String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })) }

  /// Parses a leading integer like `std::stoi`; nil where `std::stoi` throws.
  static func leadingInteger(_ text: String) -> Int32? {
    var digits = Substring(text).drop { $0 == " " }
    let isNegative = digits.first == "-"
    if isNegative || digits.first == "+" { digits = digits.dropFirst() }
    digits = digits.prefix { $0.isASCII && $0.isNumber }
    return Int32("\(isNegative ? "-" : "")\(digits)")
  }
}
