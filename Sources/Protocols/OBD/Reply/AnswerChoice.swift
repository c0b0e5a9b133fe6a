// Selects the message that answers a request, that is, one that repeats the identifier and comes from the right ECU. Other and repeated
// responses are skipped. If one ECU sends contradictory responses, the reply is rejected; if several ECUs respond, the lowest address takes
// precedence.

extension ReplyReader {
  enum Answer {
    case message(ISOTPMessage)
    /// A negative response with this code of ISO 14229.
    case negative(UInt8)
    /// There is no response to the request, for this reason.
    case nothing(String)
  }

  /// The number of frames in the reply. It is used as the frame count of later requests, so it is nil if a request to one ECU had several
  /// responses.
  func frameCount(from target: Target) -> Int? {
    guard messages.count == 1 || target.reply == nil else { return nil }
    return messages.reduce(0) { $0 + ISOTPMessage.frames(for: $1.length, capacity: target.addressBytes.receivedCapacity) }
  }

  /// The response that begins with this prefix and, if PIDs are given, one of them. `responder` is the ECU that sent the previous response.
  func answer(
    withPrefix prefix: [UInt8], parameters: [PollRequest.Parameter] = [], from target: Target, previousResponder responder: UInt32?
  ) -> Answer {
    var answer: ISOTPMessage?
    var negativeResponseCode: UInt8?
    for message in messages where target.accepts(message.source, responder: responder) {
      let bytes = bytes(of: message)
      if bytes.starts(with: prefix), parameters.isEmpty || parameters.contains(where: { $0.number == bytes.dropFirst().first }) {
        guard let earlier = answer else { answer = message; continue }
        if earlier.source == message.source, let merged = merged(earlier, message, on: parameters) {
          answer = merged
          continue
        }
        guard let first = earlier.source, let source = message.source, first != source, target.reply == nil else {
          return .nothing("contradictory responses to one request")
        }
        if source < first { answer = message }
      } else if message.length >= 3, bytes[bytes.startIndex] == 0x7F, bytes[bytes.startIndex + 1] == prefix[0] &- 0x40 {
        negativeResponseCode = bytes[bytes.startIndex + 2]
      }
    }
    return answer.map { .message($0) } ?? negativeResponseCode.map { .negative($0) } ?? .nothing("response to another request")
  }

  /// The more complete of two messages of one ECU; nil if they contradict each other.
  private func merged(_ first: ISOTPMessage, _ second: ISOTPMessage, on parameters: [PollRequest.Parameter]) -> ISOTPMessage? {
    if bytes(of: first) == bytes(of: second) { return first }
    guard let firstValues = values(of: parameters, in: first), let secondValues = values(of: parameters, in: second),
      secondValues.allSatisfy({ (firstValues[$0.key] ?? $0.value) == $0.value })
    else { return nil }
    return secondValues.count > firstValues.count ? second : first
  }

  /// The bytes of each PID in a response of service 01; nil if the lengths do not match.
  private func values(of parameters: [PollRequest.Parameter], in message: ISOTPMessage) -> [UInt8: [UInt8]]? {
    guard let end = self.end(of: parameters, in: message) else { return nil }
    let data = Array(bytes(of: message).dropFirst())
    var values: [UInt8: [UInt8]] = [:]
    var position = 0
    while position < end, let parameter = parameters.first(where: { $0.number == data[position] }) {
      values[parameter.number] = Array(data[position + 1..<position + 1 + parameter.length])
      position += 1 + parameter.length
    }
    return values
  }

  /// The end of the requested PIDs in a response of service 01; nil if the lengths do not match.
  func end(of parameters: [PollRequest.Parameter], in message: ISOTPMessage) -> Int? {
    payload.withUnsafeBufferPointer { payload in
      let data = UnsafeBufferPointer(rebasing: payload[message.start + 1..<message.start + message.length])
      return Self.end(of: parameters, in: data, hasNoHeaders: message.source == nil)
    }
  }

  /// The end of the requested PIDs in the data after the service; nil if the lengths do not match. Without headers some
  /// adapters print all seven bytes of a frame, padded with zeros.
  static func end(of parameters: [PollRequest.Parameter], in data: UnsafeBufferPointer<UInt8>, hasNoHeaders: Bool) -> Int? {
    var end = 0
    while end < data.count, let parameter = parameters.first(where: { $0.number == data[end] }) { end += 1 + parameter.length }
    if end == data.count { return end > 0 ? end : nil }
    return hasNoHeaders && data.count == 6 && end > 0 && end < 6 && data[end...].allSatisfy { $0 == 0 } ? end : nil
  }
}
