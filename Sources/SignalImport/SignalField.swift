// Converts an OBDb field to a formula. The field has `len` bits from bit `bix` on, which counts from the first data byte after the
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
    guard let length = format["len"]?.whole, length > 0 else { throw ValueError("the length (len) is missing or invalid") }
    guard length <= 53 else { throw ValueError("\(length) bits are more than a number can hold exactly") }
    let start = format["bix"].map { $0.whole } ?? 0
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

  /// The signal of this field, with the keys of its command.
  func signal(_ frame: ImportedSignal) throws(ValueError) -> ImportedSignal {
    let unit = format["unit"]?.text ?? "scalar"
    guard unit != "ascii" else { throw ValueError("a text signal; only numbers are supported") }
    let (times, over, plus) = (try number("mul") ?? 1, try number("div") ?? 1, try number("add") ?? 0)
    guard over != 0 else { throw ValueError("the formula divides by zero") }
    var made = frame
    made.value = try limited(scaled(try raw(), times, over, plus))
    made.unit = Self.units[unit]
    (made.minimum, made.maximum) = try limits(times, over, plus)
    if over == 1, times.rounded() == times, plus.rounded() == plus { made.type = .int }
    if let map = format["map"] {
      made.help = meanings(map)
    } else if unit == "yesno" {
      made.help = "0 or 1"
    } else if unit == "offon" || unit == "noyes", (times, over, plus) == (1, 1, 0) {
      made.type = .bool
      (made.minimum, made.maximum) = (nil, nil)
    }
    return made
  }

  /// The limits of the value, outside of which it is absent. As in OBDb's decoder a missing `min` is 0, and there are no limits unless `max`
  /// is greater; OBDb's decoder clamps instead.
  private func limits(_ times: Double, _ over: Double, _ plus: Double) throws(ValueError) -> (minimum: Double?, maximum: Double?) {
    let (low, high) = (try number("min"), try number("max"))
    guard let high, format["map"] == nil else { return (low, high) }
    if low == high || (low == nil && high <= 0) { return (nil, nil) }
    return (low ?? (lowest * times / over + plus < 0 || highest * times / over + plus < 0 ? 0 : nil), high)
  }

  /// The range of the raw number.
  private var lowest: Double { signed ? -Double(1 << (length - 1)) : 0 }
  private var highest: Double { Double((1 << (signed ? length - 1 : length)) - 1) }

  /// Remarks on the imported signal.
  func doubts(_ made: ImportedSignal) -> [String] {
    if format["map"] != nil { return ["imported as a number; its help lists the meanings"] }
    var doubts: [String] = []
    if format["unit"]?.text == "yesno" { doubts.append("imported as 0 or 1: the source does not define which is yes") }
    if format["min"] == nil, made.minimum != nil {
      doubts.append("the source gives no min, and OBDb assumes 0: a smaller value is absent; change min if the value can be negative")
    }
    if let max = format["max"]?.float, made.maximum == nil, made.type != .bool {
      doubts.append("max \(Value.text(max)) is not above min: neither is used, as in OBDb")
    }
    return doubts
  }

  private func number(_ key: String) throws(ValueError) -> Double? {
    guard let node = format[key] else { return nil }
    guard let number = node.float, number.isFinite else { throw ValueError("\(key) is not a number") }
    return number
  }

  private func raw() throws(ValueError) -> String {
    let bytes = start / 8...(start + length - 1) / 8
    var terms: [String] = []
    var weight = 0  // the number of less significant bits
    for index in bytes.reversed() {
      let low = index == bytes.upperBound ? 7 - (start + length - 1) % 8 : 0
      let high = index == bytes.lowerBound ? 7 - start % 8 : 7
      let place = littleEndian ? bytes.lowerBound + bytes.upperBound - index : index
      guard let name = SignalRules.byteName(place) else { throw ValueError("its bytes are beyond ZZ, the last byte with a name") }
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

  private func scaled(_ raw: String, _ times: Double, _ over: Double, _ plus: Double) -> String {
    var text = (times != 1 || over != 1) && raw.contains(" + ") && !signed ? "(\(raw))" : raw
    if times != 1 { text += "*\(Value.text(times))" }
    if over != 1 { text += "/\(Value.text(over))" }
    if plus != 0 { text += plus < 0 ? " - \(Value.text(-plus))" : " + \(Value.text(plus))" }
    return text
  }

  private func limited(_ text: String) throws(ValueError) -> String {
    let low = try number("nullmin").map { "\(text) > \(Value.text($0))" }
    let high = try number("nullmax").map { "\(text) < \(Value.text($0))" }
    let conditions = [low, high].compactMap(\.self)
    return conditions.isEmpty ? text : "\(conditions.joined(separator: " && ")) ? \(text) : absent"
  }

  /// The meanings of the numbers, as many as fit: `0 off, 1 on`.
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
