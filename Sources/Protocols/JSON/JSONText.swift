// The contents of a parsed message: strings with their escapes resolved, numbers in the requested type, members by key.

extension JSONDocument {
  /// The bytes of a node.
  package func slice(_ index: Int) -> ArraySlice<UInt8> { bytes[nodes[index].start..<nodes[index].end] }

  /// The decoded string or key. Throws for invalid escapes, lone surrogates and invalid UTF-8.
  package func text(_ index: Int) throws(JSONSyntax) -> String {
    guard nodes[index].kind == .coded else { return String(decoding: slice(index), as: UTF8.self) }
    guard let text = String(validating: try unescaped(index), as: UTF8.self) else { throw JSONSyntax(message: "invalid UTF-8") }
    return text
  }

  /// The bytes of a string or key, with escapes resolved.
  private func unescaped(_ index: Int) throws(JSONSyntax) -> ArraySlice<UInt8> {
    let raw = slice(index)
    guard nodes[index].kind == .coded else { return raw }
    var plain: [UInt8] = []
    plain.reserveCapacity(raw.count)
    var at = raw.startIndex
    while at < raw.endIndex {
      guard raw[at] == UInt8(ascii: "\\") else {
        plain.append(raw[at])
        at += 1
        continue
      }
      guard at + 1 < raw.endIndex else { throw JSONSyntax(message: "incomplete escape sequence") }
      at += 2
      switch raw[at - 1] {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): plain.append(raw[at - 1])
      case UInt8(ascii: "b"): plain.append(8)
      case UInt8(ascii: "f"): plain.append(12)
      case UInt8(ascii: "n"): plain.append(10)
      case UInt8(ascii: "r"): plain.append(13)
      case UInt8(ascii: "t"): plain.append(9)
      case UInt8(ascii: "u"): plain.append(contentsOf: try scalar(raw, &at).utf8)
      default: throw JSONSyntax(message: "unknown escape sequence")
      }
    }
    return plain[...]
  }

  /// Decodes a `\u` escape: four hex digits, or a surrogate pair of two escapes.
  private func scalar(_ raw: ArraySlice<UInt8>, _ at: inout Int) throws(JSONSyntax) -> Unicode.Scalar {
    let high = try unit(raw, &at)
    if let scalar = Unicode.Scalar(high) { return scalar }
    guard high < 0xdc00, raw.endIndex - at >= 2, raw[at] == UInt8(ascii: "\\"), raw[at + 1] == UInt8(ascii: "u") else {
      throw JSONSyntax(message: "lone surrogate")
    }
    at += 2
    let low = try unit(raw, &at)
    guard 0xdc00..<0xe000 ~= low, let scalar = Unicode.Scalar(0x10000 + (high - 0xd800) << 10 + (low - 0xdc00)) else {
      throw JSONSyntax(message: "lone surrogate")
    }
    return scalar
  }

  private func unit(_ raw: ArraySlice<UInt8>, _ at: inout Int) throws(JSONSyntax) -> UInt32 {
    var unit: UInt32 = 0
    guard raw.endIndex - at >= 4 else { throw JSONSyntax(message: "incomplete escape sequence") }
    for byte in raw[at..<at + 4] {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw JSONSyntax(message: "unknown escape sequence")
      }
      unit = unit << 4 | UInt32(digit)
    }
    at += 4
    return unit
  }

  /// The integer, even if it is written as `70.0`; nil if it is not an integer or does not fit into Int.
  package func int(_ index: Int) -> Int? {
    let node = nodes[index]
    if node.kind == .number { return float(index).flatMap(Int.init(exactly:)) }
    guard node.kind == .integer else { return nil }
    let isNegative = bytes[node.start] == UInt8(ascii: "-")
    var number = 0
    for byte in bytes[(isNegative ? node.start + 1 : node.start)..<node.end] {
      let (product, overflow) = number.multipliedReportingOverflow(by: 10)
      let digit = Int(byte &- UInt8(ascii: "0"))
      let (sum, overflowed) = isNegative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      guard !overflow, !overflowed else { return nil }
      number = sum
    }
    return number
  }

  /// The number; nil if it is not finite or the node is not a number.
  package func float(_ index: Int) -> Double? {
    guard nodes[index].kind == .integer || nodes[index].kind == .number else { return nil }
    return Double(String(decoding: slice(index), as: UTF8.self)).flatMap(\.finite)
  }

  /// The index of the value of a key in an object; nil if the object has no such key.
  package func member(_ key: String, of object: Int) -> Int? {
    let size = key.utf8.count
    var index = object + 1
    while index < nodes[object].after {
      let isMatch =
        nodes[index].kind == .plain
        ? size == nodes[index].end - nodes[index].start && key.utf8.elementsEqual(slice(index)) : (try? text(index)) == key
      if isMatch { return index + 1 }
      index = nodes[index + 1].after
    }
    return nil
  }

  /// The members of an object, in order: the keys, and the indices of their values.
  package func members(of object: Int) -> [(key: String, value: Int)] {
    var members: [(key: String, value: Int)] = []
    var index = object + 1
    while index < nodes[object].after {
      if let key = try? text(index) { members.append((key, index + 1)) }
      index = nodes[index + 1].after
    }
    return members
  }

  /// The indices of the values by key, or nil for a small object, in which a linear search is faster.
  package func valueIndices(in object: Int) -> [String: Int]? {
    guard nodes[object].after - object > Self.maxNodesWithoutIndex else { return nil }
    return Dictionary(members(of: object).map { ($0.key, $0.value) }) { first, _ in first }
  }

  private static let maxNodesWithoutIndex = 64

  /// A key that occurs twice in an object, or nil. A few plain keys are compared with each other. For more keys, or escaped ones, a set is
  /// used, so that the time is linear.
  package func duplicateKey(in object: Int) -> String? {
    var keys: [Int] = []
    var index = object + 1
    while index < nodes[object].after {
      keys.append(index)
      index = nodes[index + 1].after
    }
    if keys.count <= Self.maxComparedKeys, keys.allSatisfy({ nodes[$0].kind == .plain }) {
      for (position, key) in keys.enumerated() where keys[..<position].contains(where: { slice($0) == slice(key) }) {
        return try? text(key)
      }
      return nil
    }
    var seen = Set<Key>(minimumCapacity: keys.count)
    // `try?` never returns nil here, because the parser has rejected unreadable keys.
    return keys.first { key in (try? unescaped(key)).map { !seen.insert(Key(bytes: $0)).inserted } ?? false }.flatMap { try? text($0) }
  }

  /// The maximum number of keys that are compared with each other.
  private static let maxComparedKeys = 8

  /// A key as its bytes: canonically equivalent spellings are different keys.
  private struct Key: Hashable {
    let bytes: ArraySlice<UInt8>

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}

extension Double {
  /// The number, or nil if it is not finite.
  package var finite: Double? { isFinite ? self : nil }
}
