// Which message of a reply answers a request: the one that repeats it, from whom it went to. A late answer to another request is passed
// over, and of two that could be meant neither is taken, unless many were asked: then it is the lowest's.

extension CANReader {
  enum Answer {
    case message(ISOTPMessage)
    /// The controller says no, with this code of ISO 14229.
    case refusal(UInt8)
    /// There is none, and why.
    case nothing(String)
  }

  /// How many frames came, where they may be all that ever come: from one controller, or from all that were asked.
  func frames(askedOf target: Target) -> Int? {
    guard messages.count == 1 || target.reply == nil else { return nil }
    return messages.reduce(0) { $0 + ISOTPMessage.frames(for: $1.length) }
  }

  /// The answer to a request whose answers begin with `echo`; `answerer` gave the one before.
  func answer(echo: [UInt8], from target: Target, before answerer: UInt32?) -> Answer {
    var answer: ISOTPMessage?
    var refusal: UInt8?
    for message in messages where target.isAnswered(from: message.source, before: answerer) {
      let bytes = bytes(of: message)
      if bytes.starts(with: echo) {
        guard let earlier = answer else { answer = message; continue }
        guard let first = earlier.source, let source = message.source, first != source, target.reply == nil else {
          return .nothing("two answers to one request")
        }
        if source < first { answer = message }
      } else if message.length >= 3, bytes[bytes.startIndex] == 0x7F, bytes[bytes.startIndex + 1] == echo[0] &- 0x40 {
        refusal = bytes[bytes.startIndex + 2]
      }
    }
    return answer.map { .message($0) } ?? refusal.map { .refusal($0) } ?? .nothing("an answer to another request")
  }
}
