// A run of bits in an answer as a formula. `bix` counts from the first data byte behind the identifier, the highest bit of each byte
// first; `len` bits; `sign`: two's complement; `blsb`: the lowest byte first. Then raw * mul / div + add; a result at nullmin and
// below, or at nullmax and above, is no value.

struct SignalField {
  private let start: Int
  private let length: Int
  private let littleEndian: Bool
  private let signed: Bool
  private let format: JSONNode

  init(_ signal: JSONNode) throws(ValueError) {
    guard signal.kind == .object, let format = signal["fmt"], format.kind == .object else { throw ValueError("it has no format (fmt)") }
    guard let length = format["len"]?.whole, length > 0 else { throw ValueError("its length (len) is missing or none") }
    guard length <= 53 else { throw ValueError("\(length) bits are more than a number holds exactly") }
    let start = format["bix"].map { $0.whole } ?? 0
    guard let start, (0...4095 * 8).contains(start) else { throw ValueError("its place (bix) is none") }
    self.format = format
    (self.start, self.length) = (start, length)
    littleEndian = format["blsb"]?.kind == .truth && length > 8
    signed = format["sign"]?.kind == .truth
    guard !littleEndian || (start % 8 == 0 && length % 8 == 0) else {
      throw ValueError("it is little-endian and does not begin and end with a byte: which bits are meant is not sure")
    }
    guard !signed || length > 1 else { throw ValueError("one bit has no sign") }
  }

  /// The signal that this field makes of what its command says.
  func signal(_ frame: ImportedSignal) throws(ValueError) -> ImportedSignal {
    let unit = format["unit"]?.text ?? "scalar"
    guard unit != "ascii" else { throw ValueError("it is a text, and signals of your own are numbers") }
    let (times, over, plus) = (try number("mul") ?? 1, try number("div") ?? 1, try number("add") ?? 0)
    guard over != 0 else { throw ValueError("its formula divides by zero") }
    var made = frame
    made.value = try limited(scaled(try raw(), times, over, plus))
    made.unit = Self.units[unit]
    (made.minimum, made.maximum) = (try number("min"), try number("max"))
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

  /// What should be looked at.
  static func doubt(_ signal: JSONNode) -> String? {
    guard let format = signal["fmt"] else { return nil }
    if format["map"] != nil { return "it is imported as a number; help tells what the numbers mean" }
    return format["unit"]?.text == "yesno" ? "it is imported as 0 or 1: the source does not say which of them is yes" : nil
  }

  private func number(_ key: String) throws(ValueError) -> Double? {
    guard let node = format[key] else { return nil }
    guard let number = node.float, number.isFinite else { throw ValueError("its \(key) is no number") }
    return number
  }

  private func raw() throws(ValueError) -> String {
    let bytes = start / 8...(start + length - 1) / 8
    var terms: [String] = []
    var weight = 0  // bits that lie below
    for index in bytes.reversed() {
      let low = index == bytes.upperBound ? 7 - (start + length - 1) % 8 : 0
      let high = index == bytes.lowerBound ? 7 - start % 8 : 7
      let place = littleEndian ? bytes.lowerBound + bytes.upperBound - index : index
      guard let name = ExpressionParser.byteName(place) else { throw ValueError("its bytes lie behind ZZ, the last that has a name") }
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

  /// `0 off, 1 on`: what the numbers stand for, as far as a line goes.
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
