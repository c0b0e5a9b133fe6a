// Typed decoding of the parameters of calls, replies and errors. Undeclared parameters are rejected, so that a typo in a command
// is never ignored. Errors are InvalidParameter with the name of the parameter.

import FoundationEssentials
import Protocols

/// The parameters or the result of a method: a struct whose coding keys are exactly the declared fields.
public protocol VarlinkParameters: Codable, Sendable {
  associatedtype CodingKeys: CodingKey & CaseIterable
}

/// A method of an interface.
public protocol VarlinkMethod: Sendable {
  associatedtype Parameters: VarlinkParameters
  associatedtype Result: VarlinkParameters
  /// Interface and member: `io.vehicled.Get`.
  static var name: String { get }
}

/// The parameters of a method without any.
public struct NoParameters: VarlinkParameters, Equatable {
  public enum CodingKeys: CodingKey, CaseIterable {}

  public init() {}
}

extension VarlinkParameters {
  /// Decodes parameters; throws for a parameter that is not declared.
  init(strictly node: JSONNode) throws(ContractError) {
    for key in node.keys where CodingKeys(stringValue: key) == nil { throw .invalidParameter(parameter: key) }
    do { self = try Self(from: node) } catch {
      let path = if case .dataCorrupted(let context)? = error as? DecodingError { context.codingPath } else { [any CodingKey]() }
      throw .invalidParameter(parameter: path.first?.stringValue ?? "parameters")
    }
  }
}

/// The encoder, shared because creating one costs more than encoding a small message.
enum Coders {
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }()

  /// The description of a parse or decoding error.
  static func describe(_ error: any Error) -> String {
    switch error {
    case let syntax as JSONSyntax: syntax.message
    case DecodingError.dataCorrupted(let context): context.debugDescription
    default: "\(error)"
    }
  }

  /// Encodes a message with its NUL.
  static func message(_ value: some Encodable) throws -> [UInt8] {
    let data = try encoder.encode(value)
    return [UInt8](unsafeUninitializedCapacity: data.count + 1) { bytes, count in
      _ = data.copyBytes(to: bytes)
      bytes[data.count] = 0
      count = data.count + 1
    }
  }
}
