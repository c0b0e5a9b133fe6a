// A call as it comes over the wire, parsed once and strictly, as sd-varlink does: what is not a well-formed call closes the
// connection, what is a wrong parameter is answered. Must never block, log or know a method.
// Facts: the Varlink method-call page; systemd's varlink_dispatch_method for what is refused.

/// A message that is no call or no reply: whoever sent it does not speak Varlink, the connection ends.
public struct VarlinkViolation: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ description: String) { self.description = description }
}

/// One call.
public struct VarlinkCall {
  /// Interface and member: `io.vehicled.Get`.
  public let method: String
  /// The caller takes several replies.
  public let more: Bool
  /// The caller takes no reply at all, not even an error.
  public let oneway: Bool
  private let parameters: JSONNode?

  /// Reads a message (without its NUL).
  public init(_ message: UnsafeRawBufferPointer) throws(VarlinkViolation) {
    let wire: JSONNode
    do { wire = try JSONNode(message) } catch { throw VarlinkViolation("not JSON: \(error.words)") }
    func flag(_ key: String) throws(VarlinkViolation) -> Bool {
      guard let node = wire[key] else { return false }
      guard node.kind == .truth || node.kind == .falsehood else { throw VarlinkViolation("\"\(key)\" is true or false") }
      return node.kind == .truth
    }
    for key in wire.keys where !Self.keys.contains(key) { throw VarlinkViolation("a call has no key \"\(key.prefix(40))\"") }
    guard let method = try? wire["method"]?.decode(String.self) else { throw VarlinkViolation("not a call: it names no method") }
    self.method = method
    more = try flag("more")
    oneway = try flag("oneway")
    if more && oneway { throw VarlinkViolation("a call that wants more replies and none") }
    if try flag("upgrade") { throw VarlinkViolation("an upgrade, of which there is none") }
    parameters = wire["parameters"]?.root
    if let parameters, parameters.kind != .object { throw VarlinkViolation("parameters are an object") }
  }

  private static let keys = ["method", "parameters", "more", "oneway", "upgrade"]

  /// Reads a message (without its NUL).
  public init(_ message: [UInt8]) throws(VarlinkViolation) {
    self = try message.withUnsafeBytes { bytes in Result { () throws(VarlinkViolation) in try VarlinkCall(bytes) } }.get()
  }

  /// The parameters in the type that the method declares, or InvalidParameter with the name of the first that is wrong.
  public func parameters<T: VarlinkParameters>(as type: T.Type) throws(ContractError) -> T {
    try T(strictly: parameters ?? .empty)
  }

  /// A parameter that is a string, read without the others: for what is decided before they are.
  public func text(of parameter: String) -> String? { try? parameters?[parameter]?.decode(String.self) }

  /// The message (with its NUL) that makes this call. Fails for numbers that JSON cannot carry.
  public static func message<M: VarlinkMethod>(
    _ method: M.Type, _ parameters: M.Parameters, more: Bool = false, oneway: Bool = false
  ) throws -> [UInt8] {
    try message(M.name, parameters, more: more, oneway: oneway)
  }

  /// The same for a method known by name only.
  public static func message(_ method: String, _ parameters: some Encodable, more: Bool = false, oneway: Bool = false) throws -> [UInt8] {
    try Coders.message(Outgoing(method: method, parameters: parameters, more: more ? true : nil, oneway: oneway ? true : nil))
  }

  private struct Outgoing<P: Encodable>: Encodable {
    var method: String
    var parameters: P
    var more: Bool?
    var oneway: Bool?
  }
}
