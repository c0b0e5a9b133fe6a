// A small parser of Varlink interface definitions, for checks that definitions, structs and handlers agree. It is only for the trusted
// definitions in this package.
// Source: the Varlink interface-definition page (varlink.org).

import Protocols

/// The declarations of an interface definition.
public struct Interface: Sendable, Equatable {
  /// A field, with its type as written: `?[]Reading`.
  public struct Field: Sendable, Equatable {
    public var name: String
    public var type: String
  }

  /// A method, error or type. Only methods have output.
  public struct Member: Sendable, Equatable {
    public var name: String
    public var input: [Field]
    public var output: [Field] = []
  }

  public private(set) var name = ""
  public private(set) var types: [Member] = []
  public private(set) var methods: [Member] = []
  public private(set) var errors: [Member] = []
  /// The text with its comments, as GetInterfaceDescription returns it.
  public let text: String

  /// The interface org.varlink.service, which every server has.
  public static let service = Interface(VarlinkService.text)
  /// The interfaces of the daemon: org.varlink.service and io.vehicled.
  public static let all = [
    service,
    Interface(String(decoding: PackageResources.io_vehicled_varlink, as: UTF8.self)),
  ]

  /// The interface of the history: io.vehicled.history.
  public static let history = Interface(String(decoding: PackageResources.io_vehicled_history_varlink, as: UTF8.self))

  /// Parses a definition, which must be valid.
  public init(_ text: String) {
    self.text = text
    var tokens = Interface.tokens(text)[...]
    while let word = tokens.popFirst() {
      guard let name = tokens.popFirst() else { return }
      switch word {
      case "interface": self.name = name
      case "type": types.append(Member(name: name, input: Interface.fields(&tokens)))
      case "error": errors.append(Member(name: name, input: Interface.fields(&tokens)))
      case "method":
        let input = Interface.fields(&tokens)
        _ = tokens.popFirst()  // ->
        methods.append(Member(name: name, input: input, output: Interface.fields(&tokens)))
      default: return
      }
    }
  }

  /// Splits a definition into words and separators (parentheses, colons and commas); omits comments.
  private static func tokens(_ text: String) -> [String] {
    var tokens: [String] = []
    for line in text.split(separator: "\n") {
      var word = ""
      for character in line.prefix(while: { $0 != "#" }) + " " {
        if "():, ".contains(character) {
          if !word.isEmpty { tokens.append(word) }
          word = ""
          if character != " " { tokens.append(String(character)) }
        } else {
          word.append(character)
        }
      }
    }
    return tokens
  }

  /// `(name: type, …)`.
  private static func fields(_ tokens: inout ArraySlice<String>) -> [Field] {
    var fields: [Field] = []
    guard tokens.popFirst() == "(" else { return [] }
    while let name = tokens.popFirst(), name != ")" {
      if name == "," { continue }
      guard tokens.popFirst() == ":", let type = tokens.popFirst() else { return fields }
      fields.append(Field(name: name, type: type))
    }
    return fields
  }
}
