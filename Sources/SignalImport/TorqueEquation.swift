// Converts Torque's equations to formulas. Bytes have the same names in both. In Torque, a single < or > is a shift, a colon separates
// arguments, Signed takes one byte, and the precedence of bit operations is undefined, so a bit operation must be alone in its parentheses.
// Equations that use other sensors or earlier values are skipped.

import Protocols

enum TorqueEquation {
  /// The functions that have the same meaning in equations and formulas.
  private static let functions: Set<String> = ["signed", "signed8", "signed16", "abs", "int", "float32", "min", "max"]

  static func formula(_ equation: String) throws(ValueError) -> String {
    var reader = Reader(bytes: Array(equation.utf8))
    return try reader.formula()
  }

  private struct Reader {
    let bytes: [UInt8]
    var at = 0
    var out: [UInt8] = []
    /// The operators in each open parenthesis, the outermost first.
    var groups: [Set<UInt8>] = [[]]

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func formula() throws(ValueError) -> String {
      guard bytes.count <= SignalRules.maxFormulaLength else { throw ValueError("the equation is too long") }
      while at < bytes.count {
        let byte = bytes[at]
        switch byte {
        case _ where isLetter(byte): try word()
        case UInt8(ascii: "{"): try bit()
        case UInt8(ascii: "("):
          groups.append([])
          copy(byte)
        case UInt8(ascii: ")"):
          try endGroup()
          copy(byte)
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          try endGroup()
          groups.append([])
          copy(UInt8(ascii: ","))
        case UInt8(ascii: "<"), UInt8(ascii: ">"):
          if at + 1 < bytes.count, bytes[at + 1] == byte { at += 1 }
          recordOperator(byte)
          out.append(byte)
          copy(byte)
        case UInt8(ascii: "^"): throw ValueError("^ in the equation is ambiguous: power or exclusive or")
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "%"), UInt8(ascii: "&"),
          UInt8(ascii: "|"):
          recordOperator(byte)
          copy(byte)
        case UInt8(ascii: "["): throw ValueError("the equation reads another sensor")
        default: copy(byte)
        }
      }
      try endGroup()
      while let last = out.last, isBlank(last) { out.removeLast() }
      return String(decoding: out, as: UTF8.self)
    }

    /// Appends a byte to the formula, and advances.
    private mutating func copy(_ byte: UInt8) {
      out.append(byte)
      at += 1
    }

    private mutating func recordOperator(_ operation: UInt8) { groups[groups.count - 1].insert(operation) }

    /// Handles the end of a parenthesis or an argument.
    private mutating func endGroup() throws(ValueError) {
      guard let last = groups.popLast() else { return groups.append([]) }
      if groups.isEmpty { groups.append([]) }
      let isBitwise = last.contains { [UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&"), UInt8(ascii: "|")].contains($0) }
      if isBitwise, last.count > 1 {
        throw ValueError("the equation is ambiguous; put bit operations and shifts in parentheses, as in (A>4)+B")
      }
    }

    /// Reads a byte's name or a function.
    private mutating func word() throws(ValueError) {
      let start = at
      while at < bytes.count, isLetter(bytes[at]) || isDigit(bytes[at]) { at += 1 }
      let word = String(decoding: bytes[start..<at], as: UTF8.self)
      if SignalRules.isByte(word) {
        out += word.uppercased().utf8
        return
      }
      let name = word.lowercased()
      if name == "val" { throw ValueError("the equation reads another sensor") }
      guard TorqueEquation.functions.contains(name) else {
        throw ValueError("the equation uses \(word.prefix(20)), which is not supported")
      }
      if name == "signed" || name == "signed8" { try checkOneByte() }
      out += name.utf8
    }

    /// Checks that the argument of Signed is a single byte, because Torque's Signed always converts eight bits.
    private func checkOneByte() throws(ValueError) {
      var inside = bytes[at...].drop(while: isBlank)
      guard inside.popFirst() == UInt8(ascii: "("), let end = inside.firstIndex(of: UInt8(ascii: ")")),
        case let name = String(decoding: inside[..<end].filter { !isBlank($0) }, as: UTF8.self), SignalRules.isByte(name)
      else { throw ValueError("Signed takes one byte; write signed(A*256+B, 16) for more") }
    }

    /// Reads a bit, such as `{A:3}`.
    private mutating func bit() throws(ValueError) {
      guard let end = bytes[at...].firstIndex(of: UInt8(ascii: "}")) else { throw ValueError("unclosed { in the equation") }
      out += String(decoding: bytes[at...end], as: UTF8.self).uppercased().utf8
      at = end + 1
    }
  }
}
