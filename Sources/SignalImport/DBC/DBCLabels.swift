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
  private static let words: Set = ["sna", "na", "nan", "init"]
  private static let phrases = [
    "notavail", "unavail", "invalid", "notvalid", "undefined", "notdefined", "unknown", "error", "fault", "fail", "reserved", "unused",
    "notused", "nodata", "nosignal", "novalue", "ungültig", "ungueltig", "nicht", "fehler",
  ]

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
    let atEnd = Self.absentAtEnds(labels, of: signal.field)
    let isPlain = signal.factor == 1 && signal.offset == 0
    isEnumeration = isPlain && Self.areNames(labels, range, hasRange: range != signal.field.range, hasUnit: hasUnit, atEnd)
    let isUsed = isEnumeration ? { _ in true } : { atEnd.contains($0.value) || !range.contains(Double($0.value)) } as (Label) -> Bool
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

  /// Whether the texts are the names of an enumeration: every value has one, or most values of a number without a unit do. Many files do not
  /// limit the range of an enumeration; its names then begin with 0 or 1.
  private static func areNames(
    _ labels: [Label], _ range: ClosedRange<Double>, hasRange: Bool, hasUnit: Bool, _ atEnd: Set<Int>
  ) -> Bool {
    let count = range.upperBound.rounded(.down) - range.lowerBound.rounded(.up) + 1
    let named = Double(labels.count { range.contains(Double($0.value)) })
    if named >= count { return true }
    let names = labels.filter { !atEnd.contains($0.value) }
    guard !hasUnit, names.count > 1, names.contains(where: { $0.value == 0 || $0.value == 1 }) else { return false }
    return !hasRange || 2 * named >= count
  }

  /// The largest values of the bits, and the smallest ones of a signed number, as far as their texts say that there is no value. A single
  /// bit has none.
  private static func absentAtEnds(_ labels: [Label], of field: CANBitField) -> Set<Int> {
    let absent = Set(labels.filter { saysAbsent($0.text) }.map(\.value))
    var found: Set<Int> = []
    for (end, step) in [(field.range.upperBound, -1), (field.range.lowerBound, 1)] where end != 0 && field.length > 1 {
      var next = Int(exactly: end)
      while let value = next, absent.contains(value), found.insert(value).inserted { next = value + step }
    }
    return found
  }

  private static func saysAbsent(_ text: String) -> Bool {
    let parts = text.lowercased().split { !$0.isLetter }.map(String.init)
    let joined = parts.joined()
    return joined == "na" || parts.contains(where: words.contains) || phrases.contains { joined.contains($0) }
  }
}
