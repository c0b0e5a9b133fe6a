// How the ESP32 in the mirror hears: what its firmware makes of the bytes of one write, with the sizes of its buffers and the
// conversions that nobody catches. It says in words what would have crashed. It must never be kinder than the firmware is.
// Facts: ISM-Embedded's main.cpp: 100 bytes for the decoded value, 64 of them decrypted whatever came, '+' ends the text, the
// value begins two bytes behind the first colon; before that, firmware that took the text as it was (`plain`).

import CryptoExtras
import Protocols

/// What is built into a mirror.
public enum MirrorFirmware: Sendable {
  /// Its key and initialization vector, 16 bytes each.
  case stock(key: [UInt8], iv: [UInt8])
  case plain
}

struct ESP32Receiver: Sendable {
  /// What a write comes to.
  enum Outcome: Equatable {
    case word(String)
    case pair(tag: String, value: String)
    /// In a person's words.
    case crash(String)
  }

  private static let bufferSize = 100
  private static let decrypted = 64
  private static let endMark = UInt8(ascii: "+")

  private let firmware: MirrorFirmware

  init(_ firmware: MirrorFirmware) { self.firmware = firmware }

  func hear(_ value: [UInt8]) -> Outcome {
    switch decrypt(value) {
    case .success(let text): if case .plain = firmware { Self.split(text[...]) } else { Self.cut(text) }
    case .failure(let crash): .crash(crash.description)
    }
  }

  /// What is in its buffer once it has decrypted a value.
  func decrypt(_ value: [UInt8]) -> Result<[UInt8], ValueError> {
    guard case .stock(let key, let iv) = firmware else { return .success(value) }
    guard value.count <= 2 * Self.bufferSize else {
      return .failure(ValueError("\(value.count) hex digits smash the stack behind a buffer of \(Self.bufferSize) bytes"))
    }
    var buffer: [UInt8] = []
    for start in stride(from: 0, to: value.count, by: 2) {
      let pair = value[start..<min(start + 2, value.count)]
      guard let byte = UInt8(String(decoding: pair, as: UTF8.self), radix: 16), !pair.contains(Self.endMark) else {
        return .failure(ValueError("\"\(String(decoding: pair, as: UTF8.self))\" is no hex number, and nobody catches that"))
      }
      buffer.append(byte)
    }
    buffer += [UInt8](repeating: 0, count: Self.decrypted - min(buffer.count, Self.decrypted))
    guard let iv = try? AES._CBC.IV(ivBytes: iv),
      let text = try? AES._CBC.decrypt(buffer[..<Self.decrypted], using: SymmetricKey(data: key), iv: iv, noPadding: true)
    else { return .failure(ValueError("its key is none")) }
    return .success(Array(text))
  }

  /// The text up to the first end mark.
  static func cut(_ text: [UInt8]) -> Outcome {
    guard let end = text.firstIndex(of: endMark) else { return .crash("there is no + in \(text.count) bytes: it reads beyond its buffer") }
    return split(text[..<end])
  }

  static func split(_ text: ArraySlice<UInt8>) -> Outcome {
    let whole = latin1(text)
    if whole == "Connected" || whole == "Disconnected" { return .word(whole) }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
      // What is not found is the largest number of all, and two bytes behind that is the second one.
      return text.isEmpty ? .crash("the text is empty") : .pair(tag: whole, value: latin1(text.dropFirst()))
    }
    let tag = latin1(text[..<colon])
    guard colon + 2 <= text.endIndex else { return .crash("\(tag): ends behind its colon, and nobody catches that") }
    return .pair(tag: tag, value: latin1(text[(colon + 2)...]))
  }

  /// Bytes as the display takes them: a character each.
  static func latin1(_ bytes: some Sequence<UInt8>) -> String { String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })) }

  /// How C++ reads a whole number: what stands in front of the text; nil where it throws.
  static func wholeNumber(_ text: String) -> Int32? {
    var digits = Substring(text).drop { $0 == " " }
    let isNegative = digits.first == "-"
    if isNegative || digits.first == "+" { digits = digits.dropFirst() }
    digits = digits.prefix { $0.isASCII && $0.isNumber }
    return Int32("\(isNegative ? "-" : "")\(digits)")
  }
}
