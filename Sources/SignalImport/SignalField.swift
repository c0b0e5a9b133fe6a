// Converts an OBDb field to a formula. The field has `len` bits starting at bit `bix`; bits are numbered from the first data byte after the
// identifier, most significant bit first. `sign` means two's complement, `blsb` little endian. The value is raw * mul / div + add; it is
// absent if it is <= nullmin or >= nullmax.

import Protocols

struct SignalField {
  private let start: Int
  private let length: Int
  private let littleEndian: Bool
  private let signed: Bool
  private let format: JSONNode

  init(_ signal: JSONNode) throws(ValueError) {
    guard signal.kind == .object, let format = signal["fmt"], format.kind == .object else { throw ValueError("no format (fmt)") }
    guard let length = format["len"]?.int, length > 0 else { throw ValueError("the length (len) is missing or invalid") }
    guard length <= 53 else { throw ValueError("\(length) bits are more than a number can hold exactly") }
    let start = format["bix"].map { $0.int } ?? 0
    guard let start, (0...4095 * 8).contains(start) else { throw ValueError("the bit position (bix) is invalid") }
    self.format = format
    (self.start, self.length) = (start, length)
    littleEndian = format["blsb"]?.kind == .true && length > 8
    signed = format["sign"]?.kind == .true
    guard !littleEndian || (start % 8 == 0 && length % 8 == 0) else {
      throw ValueError("ambiguous bit order: little-endian, but not aligned to bytes")
    }
    guard !signed || length > 1 else { throw ValueError("a single bit cannot be signed") }
  }

  /// The signal of this field; `template` contains the keys that all signals of the command share: request, header and period.
  func signal(_ template: ImportedSignal) throws(ValueError) -> ImportedSignal {
    let unit = format["unit"]?.text ?? "scalar"
    guard unit != "ascii" else { throw ValueError("a text signal; only numbers are supported") }
    let (factor, divisor, offset) = (try number("mul") ?? 1, try number("div") ?? 1, try number("add") ?? 0)
    guard divisor != 0 else { throw ValueError("the formula divides by zero") }
    var signal = template
    signal.value = try withNullConditions(scaled(try raw(), factor, divisor, offset))
    signal.unit = Self.units[unit]
    (signal.minimum, signal.maximum) = try limits(factor, divisor, offset)
    if divisor == 1, factor.rounded() == factor, offset.rounded() == offset { signal.type = .int }
    if let map = format["map"] {
      signal.help = meanings(map)
    } else if unit == "yesno" {
      signal.help = "0 or 1"
    } else if unit == "offon" || unit == "noyes", (factor, divisor, offset) == (1, 1, 0) {
      signal.type = .bool
      (signal.minimum, signal.maximum) = (nil, nil)
    }
    return signal
  }

  /// The limits outside which the value is absent (OBDb's decoder clamps it instead). As in OBDb's decoder, if there is a `max`, a missing
  /// `min` means 0, and neither limit is used if `max` equals `min`, or if `min` is missing and `max` is not above 0.
  private func limits(_ factor: Double, _ divisor: Double, _ offset: Double) throws(ValueError) -> (minimum: Double?, maximum: Double?) {
    let (low, high) = (try number("min"), try number("max"))
    guard let high, format["map"] == nil else { return (low, high) }
    if low == high || (low == nil && high <= 0) { return (nil, nil) }
    return (low ?? (rawMinimum * factor / divisor + offset < 0 || rawMaximum * factor / divisor + offset < 0 ? 0 : nil), high)
  }

  /// The smallest raw number.
  private var rawMinimum: Double { signed ? -Double(1 << (length - 1)) : 0 }
  /// The largest raw number.
  private var rawMaximum: Double { Double((1 << (signed ? length - 1 : length)) - 1) }

  func remarks(on signal: ImportedSignal) -> [String] {
    if format["map"] != nil { return ["imported as a number; its help lists the meanings"] }
    var remarks: [String] = []
    if format["unit"]?.text == "yesno" { remarks.append("imported as 0 or 1: the source does not define which is yes") }
    if format["min"] == nil, signal.minimum != nil {
      remarks.append("the source gives no min, and OBDb assumes 0: a smaller value is absent; change min if the value can be negative")
    }
    if let max = format["max"]?.float, signal.maximum == nil, signal.type != .bool {
      remarks.append("max \(Value.text(max)) is not above min: neither is used, as in OBDb")
    }
    return remarks
  }

  private func number(_ key: String) throws(ValueError) -> Double? {
    guard let node = format[key] else { return nil }
    guard let number = node.float, number.isFinite else { throw ValueError("\(key) is not a number") }
    return number
  }

  /// The formula of the raw number.
  private func raw() throws(ValueError) -> String {
    let bytes = start / 8...(start + length - 1) / 8
    var terms: [String] = []
    var weight = 0  // the number of less significant bits
    for index in bytes.reversed() {
      let low = index == bytes.upperBound ? 7 - (start + length - 1) % 8 : 0
      let high = index == bytes.lowerBound ? 7 - start % 8 : 7
      let byte = littleEndian ? bytes.lowerBound + bytes.upperBound - index : index
      guard let name = SignalRules.byteName(byte) else {
        throw ValueError("its bytes lie beyond ZZ, the last byte that a formula can name")
      }
      if length == 1 { return "{\(name):\(low)}" }
      let mask = 1 << (high - low + 1) - 1
      var term = low == 0 ? name : "(\(name) >> \(low))"
      if high < 7 { term = "(\(term) & \(mask))" }
      terms.insert(weight == 0 ? term : "\(term)*\(1 << weight)", at: 0)
      weight += high - low + 1
    }
    let sum = terms.joined(separator: " + ")
    if signed { return length == 8 && terms.count == 1 && start % 8 == 0 ? "signed(\(sum))" : "signed(\(sum), \(length))" }
    return sum
  }

  /// The formula with factor, divisor and offset.
  private func scaled(_ raw: String, _ factor: Double, _ divisor: Double, _ offset: Double) -> String {
    var text = (factor != 1 || divisor != 1) && raw.contains(" + ") && !signed ? "(\(raw))" : raw
    if factor != 1 { text += "*\(Value.text(factor))" }
    if divisor != 1 { text += "/\(Value.text(divisor))" }
    if offset != 0 { text += offset < 0 ? " - \(Value.text(-offset))" : " + \(Value.text(offset))" }
    return text
  }

  /// The formula with the conditions of nullmin and nullmax.
  private func withNullConditions(_ text: String) throws(ValueError) -> String {
    let low = try number("nullmin").map { "\(text) > \(Value.text($0))" }
    let high = try number("nullmax").map { "\(text) < \(Value.text($0))" }
    let conditions = [low, high].compactMap(\.self)
    return conditions.isEmpty ? text : "\(conditions.joined(separator: " && ")) ? \(text) : absent"
  }

  /// The meanings of the numbers, as many as the help text has room for: `0 off, 1 on`.
  private func meanings(_ map: JSONNode) -> String {
    guard map.kind == .object else { return "" }
    let entries = map.keys.prefix(40).map { key in
      let entry = map[key]
      let word = entry?.text ?? (entry?.kind == .object ? entry?["description"]?.text ?? entry?["value"]?.text : nil)
      return "\(key) \(word ?? "unknown")"
    }
    return entries.joined(separator: ", ")
  }
}
