// A call from the wire, parsed once, and as strictly as sd-varlink does: a malformed call closes the connection, and an invalid parameter
// gets an error reply.
// Source: the Varlink method-call page; systemd's varlink_dispatch_method for what is rejected.

import Protocols

/// A message that is not a valid call or reply. The peer does not speak Varlink; the connection must be closed.
public struct VarlinkViolation: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ description: String) { self.description = description }
}

/// One call.
public struct VarlinkCall {
  /// Interface and member: `io.vehicled.Get`.
  public let method: String
  /// Whether the caller accepts more than one reply.
  public let more: Bool
  /// Whether the caller expects no reply, not even an error.
  public let oneway: Bool
  private let parameters: JSONNode?

  /// Parses a message (without its NUL).
  public init(_ message: UnsafeRawBufferPointer) throws(VarlinkViolation) {
    let wire: JSONNode
    do { wire = try JSONNode(message) } catch { throw VarlinkViolation("not JSON: \(error.message)") }
    func flag(_ key: String) throws(VarlinkViolation) -> Bool {
      guard let node = wire[key] else { return false }
      guard node.kind == .true || node.kind == .false else { throw VarlinkViolation("\"\(key)\" must be a boolean") }
      return node.kind == .true
    }
    for key in wire.keys where !Self.keys.contains(key) { throw VarlinkViolation("unknown key \"\(key.prefix(40))\" in a call") }
    guard let method = try? wire["method"]?.decode(String.self) else { throw VarlinkViolation("not a call: \"method\" is missing") }
    self.method = method
    more = try flag("more")
    oneway = try flag("oneway")
    if more && oneway { throw VarlinkViolation("\"more\" and \"oneway\" are mutually exclusive") }
    if try flag("upgrade") { throw VarlinkViolation("\"upgrade\" is not supported") }
    parameters = wire["parameters"]?.root
    if let parameters, parameters.kind != .object { throw VarlinkViolation("\"parameters\" must be an object") }
  }

  private static let keys = ["method", "parameters", "more", "oneway", "upgrade"]

  /// Parses a message (without its NUL).
  public init(_ message: [UInt8]) throws(VarlinkViolation) {
    self = try message.withUnsafeBytes { bytes in Result { () throws(VarlinkViolation) in try VarlinkCall(bytes) } }.get()
  }

  /// Decodes the parameters as the method's type; throws InvalidParameter with the name of the first invalid parameter.
  public func parameters<T: VarlinkParameters>(as type: T.Type) throws(ContractError) -> T {
    try T(strictly: parameters ?? .empty)
  }

  /// A string parameter, which can be read before the others are decoded.
  public func text(of parameter: String) -> String? { try? parameters?[parameter]?.decode(String.self) }

  /// Encodes a call (with its NUL). Throws for numbers that JSON cannot express.
  public static func message<M: VarlinkMethod>(
    _ method: M.Type, _ parameters: M.Parameters, more: Bool = false, oneway: Bool = false
  ) throws -> [UInt8] {
    try message(M.name, parameters, more: more, oneway: oneway)
  }

  /// Encodes a call of a method given by its name (with its NUL).
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
