// The characters of an ELM327 dialogue, hexadecimal text, and a printable form for logs.

package let carriageReturn = UInt8(ascii: "\r")
package let lineFeed = UInt8(ascii: "\n")
package let space = UInt8(ascii: " ")
package let tab = UInt8(ascii: "\t")
let prompt = UInt8(ascii: ">")
let colon = UInt8(ascii: ":")
let dot = UInt8(ascii: ".")

@inline(__always) package func isLineEnd(_ byte: UInt8) -> Bool { byte == carriageReturn || byte == lineFeed }
@inline(__always) package func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab || isLineEnd(byte) }
@inline(__always) package func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }
@inline(__always) package func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }
@inline(__always) func isHexDigit(_ byte: UInt8) -> Bool { hexValue(byte) < 16 }

/// The value of a hex digit of either case; 16 or more for any other byte.
@inline(__always) func hexValue(_ byte: UInt8) -> UInt8 {
  let digit = byte &- 0x30
  if digit < 10 { return digit }
  let letter = (byte | 0x20) &- 0x61
  return letter < 6 ? letter &+ 10 : 0xFF
}

let hexDigits = Array("0123456789ABCDEF".utf8)

/// Two upper-case digits per byte: `410C0D74`.
func hexText(_ bytes: some Sequence<UInt8>) -> [UInt8] { bytes.flatMap { [hexDigits[Int($0 >> 4)], hexDigits[Int($0 & 15)]] } }

/// Two upper-case digits per byte, separated by spaces: `41 0C 0D 74`.
func spacedHex(_ bytes: some Sequence<UInt8>) -> String {
  var text: [UInt8] = []
  for byte in bytes {
    if !text.isEmpty { text.append(space) }
    text.append(hexDigits[Int(byte >> 4)])
    text.append(hexDigits[Int(byte & 15)])
  }
  return String(decoding: text, as: UTF8.self)
}

/// A printable form of received or sent bytes, at most `limit` characters: CR is `|`, LF is omitted, and any
/// other unprintable byte is `\xNN`.
func printable(_ bytes: some Sequence<UInt8>, limit: Int = 200) -> String {
  var text: [UInt8] = []
  for byte in bytes {
    switch byte {
    case carriageReturn: text.append(UInt8(ascii: "|"))
    case lineFeed: continue
    case 0x20..<0x7F: text.append(byte)
    default: text += [UInt8(ascii: "\\"), UInt8(ascii: "x"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
    }
    if text.count > limit { return String(decoding: text.prefix(limit - 3), as: UTF8.self) + "..." }
  }
  return String(decoding: text, as: UTF8.self)
}

/// The lines of a reply without leading and trailing blanks; empty lines are omitted.
func lines(of reply: some Collection<UInt8>) -> [[UInt8]] {
  reply.split(whereSeparator: isLineEnd).compactMap { line in
    let rest = line.drop(while: isBlank)
    guard let last = rest.lastIndex(where: { !isBlank($0) }) else { return nil }
    return Array(rest[...last])
  }
}
