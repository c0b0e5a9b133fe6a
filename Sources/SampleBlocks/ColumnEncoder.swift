// Encodes one column, before compression; ColumnDecoder.swift decodes it. Numbers are written as differences, which are mostly zero or
// small, so that deflate compresses them well.
//
//   column    = encoding:u8 absences values
//   absences  = count; then for each absence, the number of samples skipped since the previous absence, and the index of its reason
//   values    = the values of the samples that are not absent, as defined by the encoding

import Protocols

enum ColumnEncoding: UInt8 {
  /// One byte per value.
  case bools = 0
  /// The difference of each value from the previous one.
  case ints
  /// Decimals:u8, then as ints.
  case decimals
  /// The bit pattern of each value XOR the previous one; first the most significant bytes of all values, then the next ones.
  case doubles
  /// Dictionary (count, strings), then the index of each value.
  case strings
  /// Decimals:u8, number of elements, then for each element the difference from the same element of the previous list.
  case decimalLists
  /// Dictionary of elements, then for each list its number of elements and their indexes.
  case stringLists
}

extension ByteWriter {
  /// Appends a column of samples of this type. The reasons for absences are added to those of the block.
  mutating func append(_ type: ValueType, _ samples: [Sample], reasons: inout StringTable) {
    var body = ByteWriter()
    let encoding = body.append(type, samples)
    bytes.append(encoding.rawValue)
    append(absences: samples, &reasons)
    bytes.append(contentsOf: body.bytes)
  }

  private mutating func append(absences samples: [Sample], _ reasons: inout StringTable) {
    var absences: [(sample: Int, reason: Int)] = []
    for (index, sample) in samples.enumerated() {
      if case .absent(let reason) = sample.content { absences.append((index, reasons.index(of: reason))) }
    }
    append(absences.count)
    var next = 0
    for absence in absences {
      append(absence.sample - next)
      append(absence.reason)
      next = absence.sample + 1
    }
  }

  /// Appends the values of the samples that are not absent, which all have this type.
  private mutating func append(_ type: ValueType, _ samples: [Sample]) -> ColumnEncoding {
    switch type {
    case .bool:
      for sample in samples { if case .value(.bool(let value)) = sample.content { bytes.append(value ? 1 : 0) } }
      return .bools
    case .int:
      append(differences: samples.compactMap { if case .value(.int(let value)) = $0.content { Int64(value) } else { nil } })
      return .ints
    case .float: return append(floats: samples.compactMap { if case .value(.float(let value)) = $0.content { value } else { nil } })
    case .string:
      var dictionary = StringTable()
      let indexes: [Int] = samples.compactMap {
        if case .value(.string(let value)) = $0.content { dictionary.index(of: value) } else { nil }
      }
      append(dictionary)
      for index in indexes { append(index) }
      return .strings
    case .list: return append(lists: samples.compactMap { if case .value(.list(let value)) = $0.content { value } else { nil } })
    }
  }

  mutating func append(differences numbers: [Int64]) {
    var previous: Int64 = 0
    for number in numbers {
      append(signed: number &- previous)
      previous = number
    }
  }

  private mutating func append(floats: [Double]) -> ColumnEncoding {
    if let (decimals, integers) = DecimalScale.integers(floats) {
      bytes.append(UInt8(decimals))
      append(differences: integers)
      return .decimals
    }
    var previous: UInt64 = 0
    let differences = floats.map { number in
      defer { previous = number.bitPattern }
      return number.bitPattern ^ previous
    }
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
      for difference in differences { bytes.append(UInt8(truncatingIfNeeded: difference >> shift)) }
    }
    return .doubles
  }

  private mutating func append(lists: [[String]]) -> ColumnEncoding {
    if let (decimals, size, integers) = decimals(lists) {
      bytes.append(UInt8(decimals))
      append(size)
      for (index, integer) in integers.enumerated() { append(signed: integer &- (index < size ? 0 : integers[index - size])) }
      return .decimalLists
    }
    var dictionary = StringTable()
    let indexes = lists.map { $0.map { dictionary.index(of: $0) } }
    append(dictionary)
    for list in indexes {
      append(list.count)
      for index in list { append(index) }
    }
    return .stringLists
  }

  /// Returns the elements of the lists as integers with a common number of decimals, or nil unless all lists have the same size and all
  /// elements are decimal fractions.
  private func decimals(_ lists: [[String]]) -> (decimals: Int, size: Int, integers: [Int64])? {
    guard let size = lists.first?.count, size > 0, lists.allSatisfy({ $0.count == size }) else { return nil }
    var numbers: [(integer: Int64, decimals: Int)] = []
    for text in lists.joined() {
      guard let number = DecimalScale.parse(text) else { return nil }
      numbers.append(number)
    }
    let decimals = numbers.reduce(0) { max($0, $1.decimals) }
    let integers = numbers.compactMap { DecimalScale.rescale($0.integer, by: decimals - $0.decimals) }
    return integers.count == numbers.count ? (decimals, size, integers) : nil
  }

  mutating func append(_ table: StringTable) {
    append(table.strings.count)
    for string in table.strings { append(string) }
  }
}

/// Distinct strings, in the order of their first use.
struct StringTable {
  private(set) var strings: [String] = []
  private var indexes: [String: Int] = [:]

  mutating func index(of string: String) -> Int {
    if let index = indexes[string] { return index }
    indexes[string] = strings.count
    strings.append(string)
    return strings.count - 1
  }
}
