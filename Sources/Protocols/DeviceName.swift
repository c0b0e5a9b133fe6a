// The rule for the names of devices, which the configuration, the history and imported files share.

/// Whether the name has at most `maxLength` lower-case letters, digits and dashes, and begins with a letter.
public func isDeviceName(_ name: String, maxLength: Int = 32) -> Bool {
  let bytes = name.utf8
  let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
  let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
  guard let first = bytes.first, isLetter(first), bytes.count <= maxLength else { return false }
  return bytes.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
}
