// Replies, encoded and decoded with exactly the keys of the wire: parameters, continues, error. Absent optional keys are omitted.
// `continues` must not be sent with an error: strict clients close the connection.

import Protocols

/// One reply.
public struct VarlinkReply {
  /// Whether another reply to the same call follows.
  public let continues: Bool
  /// The full name of the error, if the call failed.
  public let error: String?
  private let node: JSONNode?

  /// Parses a message (without its NUL). Unknown keys are ignored, because a newer daemon may send them.
  public init(_ message: UnsafeRawBufferPointer) throws(VarlinkViolation) {
    let wire: JSONNode
    do { wire = try JSONNode(message) } catch { throw VarlinkViolation("not JSON: \(error.message)") }
    guard wire.kind == .object else { throw VarlinkViolation("not a JSON object") }
    do {
      continues = try wire["continues"]?.decode(Bool.self) ?? false
      error = try wire["error"]?.decode(String.self)
    } catch { throw VarlinkViolation("not a reply: \(Coders.describe(error))") }
    node = wire["parameters"]?.root
    if let node, node.kind != .object { throw VarlinkViolation("\"parameters\" must be an object") }
  }

  /// Parses a message (without its NUL).
  public init(_ message: [UInt8]) throws(VarlinkViolation) {
    self = try message.withUnsafeBytes { bytes in Result { () throws(VarlinkViolation) in try VarlinkReply(bytes) } }.get()
  }

  /// Decodes the parameters as the method's type.
  public func parameters<T: Decodable>(as type: T.Type) throws(VarlinkViolation) -> T {
    do { return try T(from: node ?? .empty) } catch {
      throw VarlinkViolation("invalid reply: \(Coders.describe(error))")
    }
  }

  /// Encodes a reply (with its NUL).
  public static func message(_ parameters: some VarlinkParameters, continues: Bool = false) -> [UInt8] {
    encode(Outgoing(parameters: parameters, continues: continues ? true : nil, error: nil))
  }

  /// The bytes before and after the JSON text of the parameters of a reply, with its NUL.
  public enum Envelope {
    public static let head = Array("{\"parameters\":".utf8)
    public static func tail(continues: Bool) -> [UInt8] { Array((continues ? ",\"continues\":true}\0" : "}\0").utf8) }
  }

  /// Encodes an error (with its NUL).
  public static func message(_ error: ContractError) -> [UInt8] { message(error: error) }

  /// Encodes an error of any interface (with its NUL).
  public static func message(error: some VarlinkError) -> [UInt8] {
    encode(Outgoing(parameters: error.parameters, continues: nil, error: error.name))
  }

  /// The reply of a method without output.
  public static let empty: [UInt8] = message(NoParameters())

  /// Encodes a reply. This fails only for numbers that JSON cannot express, which the types of the contract cannot contain.
  private static func encode(_ reply: some Encodable) -> [UInt8] {
    do { return try Coders.message(reply) } catch { preconditionFailure("a reply cannot be encoded: \(error)") }
  }

  private struct Outgoing<P: Encodable>: Encodable {
    var parameters: P
    var continues: Bool?
    var error: String?
  }
}
