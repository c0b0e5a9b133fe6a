// Parameters of calls, replies and errors, decoded by type. Undeclared ones are refused by name: a typo in a command must
// never be ignored. Must never guess: what does not fit is InvalidParameter with the name of the parameter.

import FoundationEssentials

/// The input or output of a method: a struct whose coding keys are exactly the declared fields.
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

/// No parameters at all.
public struct NoParameters: VarlinkParameters, Equatable {
  public enum CodingKeys: CodingKey, CaseIterable {}

  /// Nothing.
  public init() {}
}

extension VarlinkParameters {
  /// Decodes parameters, every one of which must be declared.
  init(strictly node: JSONNode) throws(ContractError) {
    for key in node.keys where CodingKeys(stringValue: key) == nil { throw .invalidParameter(parameter: key) }
    do { self = try Self(from: node) } catch {
      let path = if case .dataCorrupted(let context)? = error as? DecodingError { context.codingPath } else { [any CodingKey]() }
      throw .invalidParameter(parameter: path.first?.stringValue ?? "parameters")
    }
  }
}

/// Writes messages. Making a coder costs more than a small message, so there is one.
enum Coders {
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }()

  /// What was wrong with a message.
  static func words(_ error: any Error) -> String {
    switch error {
    case let syntax as JSONSyntax: syntax.words
    case DecodingError.dataCorrupted(let context): context.debugDescription
    default: "\(error)"
    }
  }

  /// The message with its NUL.
  static func message(_ value: some Encodable) throws -> [UInt8] {
    let data = try encoder.encode(value)
    return [UInt8](unsafeUninitializedCapacity: data.count + 1) { bytes, count in
      _ = data.copyBytes(to: bytes)
      bytes[data.count] = 0
      count = data.count + 1
    }
  }
}
