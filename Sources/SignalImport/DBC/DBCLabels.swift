// What the texts for values (VAL_) of a signal mean. A DBC file has one statement for the names of an enumeration, for numbers that say
// that there is no value ("255: SNA"), and for the names of valid numbers ("0: off"), and does not say which of them a text is.

import Protocols

struct DBCLabels {
  typealias Label = (value: Int, text: String)

  /// Whether the value is one of the texts.
  let isEnumeration: Bool
  /// The texts of an enumeration; for a number, why there is no value.
  let used: [Label]
  /// The texts of numbers that are valid values.
  let unused: [Label]

  private static let maxCount = 200
  /// Words, and parts of texts without blanks and punctuation, for a value that is not available. Manufacturers use English and German.
  private static let words: Set = ["sna", "na", "nan", "init", "none"]
  private static let phrases = [
    "notavail", "unavail", "invalid", "notvalid", "undefin", "notdefined", "unknown", "error", "fault", "fail", "reserved", "unused",
    "notused", "notsupp", "notinspec", "notinst", "nodata", "nosignal", "novalue", "nospeed", "ungültig", "ungueltig", "nicht", "fehler",
    "keinwert", "keinsignal", "keinedaten",
  ]

  /// What only looks like one of them.
  private static let denials = ["nofault", "noerror", "nofail", "keinfehler", "keinefehler", "default"]

  /// Throws if there are more texts than a section may have. `hasUnit`: whether the numbers have a unit.
  init(of signal: DBCSignal, hasUnit: Bool) throws(ValueError) {
    guard signal.labels.count <= Self.maxCount else {
      throw ValueError("more than \(Self.maxCount) texts for its values; remove its VAL_ statement")
    }
    let labels = Self.labels(of: signal)
    guard !signal.isFloat else {
      // They would be compared with the bits of the float.
      (isEnumeration, used, unused) = (false, [], labels)
      return
    }
    let range = Self.validRange(of: signal)
    let absent = Self.absent(labels, of: signal.field, range)
    let isPlain = signal.factor == 1 && signal.offset == 0
    isEnumeration = isPlain && Self.areNames(labels, range, hasRange: range != signal.field.range, hasUnit: hasUnit, absent)
    let isUsed = isEnumeration ? { _ in true } : { absent.contains($0.value) || !range.contains(Double($0.value)) } as (Label) -> Bool
    used = labels.filter(isUsed)
    unused = labels.filter { !isUsed($0) }
  }

  /// The valid numbers, before factor and offset. A minimum of 0 with a maximum of 0 means that there is no range.
  private static func validRange(of signal: DBCSignal) -> ClosedRange<Double> {
    let field = signal.field.range
    let limits = [signal.minimum, signal.maximum].map { ($0 - signal.offset) / signal.factor }.sorted()
    // Half a step allows for rounded limits.
    let range = limits[0] - 0.5...limits[1] + 0.5
    return signal.minimum < signal.maximum && range.overlaps(field) ? range.clamped(to: field) : field
  }

  /// The first text of each value, without invisible characters.
  private static func labels(of signal: DBCSignal) -> [Label] {
    var seen: Set<Int> = []
    return signal.labels.compactMap { value, text in
      // Some files give the values of signed signals as unsigned bits: 32768 for -32768.
      let isBits = signal.field.isSigned && value >= 0 && value.bitWidth - value.leadingZeroBitCount == signal.field.length
      let number = isBits ? Int(signal.field.signed(UInt64(value))) : value
      let text = visible(text, limit: 64)
      return !text.isEmpty && seen.insert(number).inserted ? (number, text) : nil
    }
  }

  /// Whether the texts are the names of an enumeration: every value has one, or a number without a unit has as many as an enumeration.
  private static func areNames(
    _ labels: [Label], _ range: ClosedRange<Double>, hasRange: Bool, hasUnit: Bool, _ absent: Set<Int>
  ) -> Bool {
    let count = range.upperBound.rounded(.down) - range.lowerBound.rounded(.up) + 1
    let named = labels.count { range.contains(Double($0.value)) }
    if Double(named) >= count { return true }
    let names = Set(labels.map(\.value)).subtracting(absent)
    guard !hasUnit, names.count > 1 else { return false }
    // Many files do not limit the range of an enumeration. Two names can be those of special numbers, as "254: off, 255: automatic".
    guard hasRange else { return names.count > 2 || !names.isDisjoint(with: 0...1) }
    if 2 * Double(named) >= count { return true }
    // In others the range contradicts the names: 4 to 14 for an enumeration with names for 0 to 3.
    let inside = names.count { range.contains(Double($0)) }
    return inside < names.count && (inside > 2 || names.isSuperset(of: 0...1) || names.isSuperset(of: 1...2))
  }

  /// The numbers whose texts say that there is no value: outside of the valid range, the largest ones, and the smallest ones of a signed
  /// number; also 0 if it is "signal not available". A single bit has none.
  private static func absent(_ labels: [Label], of field: CANBitField, _ range: ClosedRange<Double>) -> Set<Int> {
    guard field.length > 1 else { return [] }
    let absent = Set(labels.filter { saysAbsent($0.text) }.map(\.value))
    var found = absent.filter { !range.contains(Double($0)) }
    var next = Int(exactly: range.upperBound.rounded(.down))
    while let value = next, value != 0, absent.contains(value), found.insert(value).inserted { next = value - 1 }
    next = field.isSigned ? Int(exactly: range.lowerBound.rounded(.up)) : nil
    while let value = next, value != 0, absent.contains(value), found.insert(value).inserted { next = value + 1 }
    return found.union(labels.filter { $0.value == 0 && words(of: $0.text).contains("sna") }.map(\.value))
  }

  private static func saysAbsent(_ text: String) -> Bool {
    let parts = words(of: text)
    let joined = denials.reduce(parts.joined()) { $0.replacing($1, with: "") }
    return joined == "na" || parts.contains(where: words.contains) || phrases.contains { joined.contains($0) }
  }

  private static func words(of text: String) -> [String] { text.lowercased().split { !$0.isLetter }.map(String.init) }
}
