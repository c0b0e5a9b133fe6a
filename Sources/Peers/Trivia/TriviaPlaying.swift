// The calls of the trivia server for plays, downloads, history and votes.
// Source: the server and microprocessor.ino of neils95/Trivio.

import Protocols

extension TriviaService {
  /// The maximum size of a reply to a toy in bytes, including the header. The toy reads only one packet.
  private static let maxToyReplyLength = 1024

  func history(_ id: String, _ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    let id = try number(id, "userId")
    try authorize(request, as: id)
    let user = try existingUser(id)
    let entries = user.heard > 0 ? try store.entries(1...user.heard, of: id) : []
    return HTTPReply(200, TriviaReply.history(entries, variant).text)
  }

  /// Adds a toy's plays to the counter. The counter does not go beyond the last fact that the toy has.
  func countPlays(_ id: String, _ count: String) throws -> HTTPReply {
    let (id, count) = (try number(id, "userId"), try number(count, "count"))
    var user = try existingUser(id)
    guard count >= 1 else { throw TriviaErrorReply(400, "Invalid count") }
    user.heard = max(user.heard, min(user.heard + count, user.downloaded))
    try store.setCounters(user)
    return TriviaReply.done
  }

  /// Sends the next fact to a toy. The counter advances even if the reply is lost.
  func download(_ id: String, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    guard var user = try store.user(try number(id, "userId")), let fact = try store.fact(after: user.downloaded) else {
      return TriviaReply.notFound
    }
    user.downloaded = fact.id
    try store.setCounters(user)
    guard (try? TriviaFact.speakable(fact.text)) == fact.text else {
      throw ValueError("a toy cannot speak fact \(fact.id): load it again with --facts")
    }
    let reply = HTTPReply(200, variant.text(fact.text).text)
    guard reply.bytes.count <= Self.maxToyReplyLength else { throw ValueError("fact \(fact.id) is too long for a toy") }
    return reply
  }

  func vote(_ id: String, _ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    let id = try number(id, "triviaId")
    let body = try TriviaBody(request.body)
    let (user, fact, vote) = (try body.number("userId") ?? 0, try body.number("triviaId") ?? 0, try body.number("userVote"))
    try authorize(request, as: user)
    guard fact == id else { return TriviaReply.badRequest }
    guard let vote, (-1...1).contains(vote) else { throw TriviaErrorReply(400, "userVote is -1, 0 or 1") }
    let heard = try store.user(user)?.heard ?? 0
    guard fact >= 1, fact <= heard, let before = try store.entries(fact...fact, of: user).first else {
      throw TriviaErrorReply(400, "User has not heard trivia yet or invalid user id/trivia id ")
    }
    if before.vote == vote { return TriviaReply.unchanged }
    try store.setVote(vote, on: fact, of: user)
    guard let after = try store.entries(fact...fact, of: user).first else { return TriviaReply.notFound }
    return HTTPReply(200, TriviaReply.entry(after, variant).text)
  }

  private func existingUser(_ id: Int) throws -> TriviaUser {
    guard let user = try store.user(id) else { throw TriviaErrorReply(400, "Invalid UserId") }
    return user
  }

  /// Parses a number in a path, limited to 32 bits like the original.
  private func number(_ text: String, _ name: String) throws -> Int {
    if let number = Int32(text) { return Int(number) }
    throw TriviaErrorReply(TriviaReply.message(400, "The request is invalid.", detail: "\(name) is a whole number of 32 bits."))
  }
}
