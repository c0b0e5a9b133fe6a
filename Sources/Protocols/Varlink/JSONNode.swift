// The standard library's Decoder over a parsed message, so that the structs of the contract can be decoded from it. Errors
// name the outermost key, which InvalidParameter reports.

/// A value in a message.
struct JSONNode: Decoder, Sendable {
  let document: JSONDocument
  let index: Int
  /// The member of `root` that contains this value.
  var outermost: (any CodingKey)?

  /// Parses a whole message.
  init(_ message: UnsafeRawBufferPointer) throws(JSONSyntax) {
    document = try JSONDocument(message)
    index = 0
  }

  /// `{}`, for messages without parameters.
  static let empty: JSONNode = {
    do { return try Array("{}".utf8).withUnsafeBytes { try JSONNode($0) } } catch { preconditionFailure("{} is JSON: \(error)") }
  }()

  init(_ document: JSONDocument, _ index: Int, outermost: (any CodingKey)?) {
    self.document = document
    self.index = index
    self.outermost = outermost
  }

  var kind: JSONDocument.Kind { document.nodes[index].kind }
  /// The value as the root of a coding path.
  var root: JSONNode { JSONNode(document, index, outermost: nil) }
  var codingPath: [any CodingKey] { outermost.map { [$0] } ?? [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  /// The member of an object; nil if it is absent or null.
  subscript(_ key: String) -> JSONNode? {
    guard kind == .object, let member = document.member(key, of: index) else { return nil }
    let node = JSONNode(document, member, outermost: outermost ?? AnyKey(stringValue: key))
    return node.kind == .null ? nil : node
  }

  var keys: [String] { kind == .object ? document.members(of: index).map(\.key) : [] }

  func refuse(_ message: String, _ key: (any CodingKey)? = nil) -> DecodingError {
    .dataCorrupted(.init(codingPath: (outermost ?? key).map { [$0] } ?? [], debugDescription: message))
  }

  func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard kind == .object else { throw refuse("an object is expected") }
    return KeyedDecodingContainer(Members(node: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard kind == .array else { throw refuse("a list is expected") }
    return Elements(node: self, next: index + 1)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension JSONNode: SingleValueDecodingContainer {
  func decodeNil() -> Bool { kind == .null }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let value: T?
    if type == String.self {
      value = kind == .plain || kind == .coded ? try document.text(index) as? T : nil
    } else if type == Bool.self {
      value = kind == .true || kind == .false ? (kind == .true) as? T : nil
    } else if type == Int.self {
      value = document.whole(index) as? T
    } else if type == Double.self {
      value = document.float(index) as? T
    } else {
      return try T(from: self)
    }
    guard let value else { throw refuse("\(type) is expected") }
    return value
  }
}

/// The members of an object.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let node: JSONNode
  /// An index by key, for objects in which a linear search would be too slow.
  private let places: [String: Int]?

  init(node: JSONNode) {
    self.node = node
    places = node.document.places(in: node.index)
  }

  var codingPath: [any CodingKey] { node.codingPath }
  var allKeys: [Key] { node.keys.compactMap(Key.init) }

  private func child(_ key: Key) throws -> JSONNode {
    guard let member = place(key) else {
      throw node.refuse("\"\(key.stringValue)\" is missing", key)
    }
    return JSONNode(node.document, member, outermost: node.outermost ?? key)
  }

  private func place(_ key: Key) -> Int? {
    if let places { places[key.stringValue] } else { node.document.member(key.stringValue, of: node.index) }
  }

  func contains(_ key: Key) -> Bool { place(key) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try child(key).decodeNil() }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try child(key).decode(type) }

  func nestedContainer<Nested>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
    try child(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try child(key).unkeyedContainer() }
  func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
  func superDecoder() throws -> any Decoder { node }
}

/// The elements of a list.
private struct Elements: UnkeyedDecodingContainer {
  let node: JSONNode
  var next: Int
  var currentIndex = 0

  init(node: JSONNode, next: Int) {
    self.node = node
    self.next = next
  }

  var codingPath: [any CodingKey] { node.codingPath }
  var count: Int? { nil }
  var isAtEnd: Bool { next >= node.document.nodes[node.index].after }

  private mutating func element() throws -> JSONNode {
    guard !isAtEnd else { throw node.refuse("the list is too short") }
    defer {
      next = node.document.nodes[next].after
      currentIndex += 1
    }
    return JSONNode(node.document, next, outermost: node.outermost)
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, node.document.nodes[next].kind == .null else { return false }
    _ = try element()
    return true
  }
  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try element().decode(type) }
  mutating func nestedContainer<Nested>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    try element().container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try element().unkeyedContainer() }
  mutating func superDecoder() throws -> any Decoder { try element() }
}

/// Any key of an object.
struct AnyKey: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}
