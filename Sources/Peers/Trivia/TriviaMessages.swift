// The JSON messages between apps and the trivia server.
// Source: the server of neils95/Trivio: it sends keys in camelCase, ignores the case of received keys, and describes errors in `message`,
// `messageDetail` and `modelState`.

import Protocols

/// An error reply.
struct TriviaErrorReply: Error {
  var reply: HTTPReply

  init(_ reply: HTTPReply) { self.reply = reply }
  init(_ status: Int, _ message: String) { reply = TriviaReply.message(status, message) }
}

/// The JSON body of a request.
struct TriviaBody {
  private let members: [JSON.Member]

  /// Parses a body. A missing or null body gives status 500, as in the original.
  init(_ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else { throw TriviaErrorReply(TriviaReply.error) }
    guard let text = String(validating: bytes, as: UTF8.self), let value = JSON(text) else {
      throw Self.invalid("body", "not JSON")
    }
    if value == .null { throw TriviaErrorReply(TriviaReply.error) }
    guard case .object(let members) = value else { throw Self.invalid("body", "expected an object") }
    self.members = members
  }

  private subscript(_ key: String) -> JSON? {
    let value = members.first { $0.key.lowercased() == key.lowercased() }?.value
    return value == .null ? nil : value
  }

  /// Returns a string member, or nil if it is missing.
  func text(_ key: String) throws -> String? {
    guard let value = self[key] else { return nil }
    guard let text = value.string else { throw Self.invalid(key, "expected a string") }
    return text
  }

  /// Returns an integer member, which can be a number or a string, or nil if it is missing.
  func number(_ key: String) throws -> Int? {
    switch self[key] {
    case nil: return nil
    case .int(let number)?: return number
    case .float(let number)?: if let number = Int(exactly: number) { return number }
    case .string(let text)?: if let number = Int(text) { return number }
    default: break
    }
    throw Self.invalid(key, "expected an integer")
  }

  private static func invalid(_ key: String, _ problem: String) -> TriviaErrorReply {
    let state = JSON.members([key: .array([.string(problem)])])
    return TriviaErrorReply(HTTPReply(400, JSON.members(["message": .string("The request is invalid."), "modelState": state]).text))
  }
}

/// The deviations from normal replies that faults cause.
struct TriviaReplyVariant: Sendable, Equatable {
  var idsAreStrings = false
  var factsAreNull = false
  var historyIsDoubled = false

  func id(_ id: Int) -> JSON { idsAreStrings ? .string("\(id)") : .int(id) }
  func text(_ text: String) -> JSON { factsAreNull ? .null : .string(text) }
}

/// The replies of the server.
enum TriviaReply {
  static let error = message(500, "An error has occurred.")
  static let notFound = HTTPReply(404, type: nil)
  static let done = HTTPReply(200, type: nil)
  static let unchanged = HTTPReply(204, type: nil)
  static let badRequest = HTTPReply(400, type: nil)

  static func message(_ status: Int, _ text: String, detail: String? = nil) -> HTTPReply {
    HTTPReply(status, JSON.members(["message": .string(text), "messageDetail": detail.map(JSON.string)]).text)
  }

  static func user(_ user: TriviaUser, token: String?, _ variant: TriviaReplyVariant) -> JSON {
    .members([
      "id": variant.id(user.id), "name": user.name.map(JSON.string) ?? .null, "email": .string(user.email),
      "triviaCount": .int(user.downloaded), "token": token.map(JSON.string),
    ])
  }

  static func entry(_ entry: TriviaEntry, _ variant: TriviaReplyVariant) -> JSON {
    let trivia = JSON.members([
      "id": variant.id(entry.fact.id), "text": variant.text(entry.fact.text), "upvotes": .int(entry.upvotes),
      "downvotes": .int(entry.downvotes),
    ])
    return .members(["trivia": trivia, "userVote": .int(entry.vote)])
  }

  static func history(_ entries: [TriviaEntry], _ variant: TriviaReplyVariant) -> JSON {
    let rows = entries.map { entry($0, variant) }
    return .members(["triviaHistory": .array(variant.historyIsDoubled ? rows.flatMap { [$0, $0] } : rows)])
  }
}
