// Validation of e-mail addresses by the trivia server. Source: the server of neils95/Trivio; RFC 5322 (atoms).

enum TriviaAddress {
  private static let maxLength = 50
  private static let atomMarks = Set("!#$%&'*+-/=?^_`{|}~".utf8)

  /// Whether the text consists of atoms separated by dots, `@`, and at least two labels, which start with a letter and have no final or
  /// double hyphen.
  static func isAccepted(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    let sides = bytes.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard bytes.count <= maxLength, sides.count == 2 else { return false }
    let atoms = sides[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let labels = sides[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return labels.count >= 2 && labels.allSatisfy(isLabel)
      && atoms.allSatisfy { !$0.isEmpty && $0.allSatisfy { isLetter($0) || isDigit($0) || atomMarks.contains($0) } }
  }

  private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
    guard let first = label.first, isLetter(first), label.last != hyphen else { return false }
    return label.allSatisfy { isLetter($0) || isDigit($0) || $0 == hyphen }
      && !zip(label, label.dropFirst()).contains { $0 == hyphen && $1 == hyphen }
  }

  private static let hyphen = UInt8(ascii: "-")
  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
  private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) }
}
