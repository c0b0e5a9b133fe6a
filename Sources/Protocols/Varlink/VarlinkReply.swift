// Replies, in both directions. Written with exactly the keys of the wire: parameters, continues, error; absent optionals
// are left out. Must never send `continues` with an error: strict clients close on it.

/// One reply.
public struct VarlinkReply {
  /// Another reply to the same call follows.
  public let continues: Bool
  /// The full name of the error, where the call failed.
  public let error: String?
  private let node: JSONNode?

  /// Reads a message (without its NUL). Unknown keys are let pass: a newer daemon may know more.
  public init(_ message: UnsafeRawBufferPointer) throws(VarlinkViolation) {
    let wire: JSONNode
    do { wire = try JSONNode(message) } catch { throw VarlinkViolation("not JSON: \(error.words)") }
    guard wire.kind == .object else { throw VarlinkViolation("not an object") }
    do {
      continues = try wire["continues"]?.decode(Bool.self) ?? false
      error = try wire["error"]?.decode(String.self)
    } catch { throw VarlinkViolation("not a reply: \(Coders.words(error))") }
    node = wire["parameters"]?.root
    if let node, node.kind != .object { throw VarlinkViolation("parameters are an object") }
  }

  /// Reads a message (without its NUL).
  public init(_ message: [UInt8]) throws(VarlinkViolation) {
    self = try message.withUnsafeBytes { bytes in Result { () throws(VarlinkViolation) in try VarlinkReply(bytes) } }.get()
  }

  /// The parameters in the type that the method declares.
  public func parameters<T: Decodable>(as type: T.Type) throws(VarlinkViolation) -> T {
    do { return try T(from: node ?? .empty) } catch {
      throw VarlinkViolation("an unreadable reply: \(Coders.words(error))")
    }
  }

  /// The message (with its NUL) of one reply.
  public static func message(_ parameters: some VarlinkParameters, continues: Bool = false) -> [UInt8] {
    encode(Outgoing(parameters: parameters, continues: continues ? true : nil, error: nil))
  }

  /// The message (with its NUL) of an error.
  public static func message(_ error: ContractError) -> [UInt8] {
    encode(Outgoing(parameters: error.parameters, continues: nil, error: error.name))
  }

  /// What a method without output answers.
  public static let empty: [UInt8] = message(NoParameters())

  /// Only a number that JSON cannot carry can fail, and the types of the contract hold none.
  private static func encode(_ reply: some Encodable) -> [UInt8] {
    do { return try Coders.message(reply) } catch { preconditionFailure("a reply that is no JSON: \(error)") }
  }

  private struct Outgoing<P: Encodable>: Encodable {
    var parameters: P
    var continues: Bool?
    var error: String?
  }
}
