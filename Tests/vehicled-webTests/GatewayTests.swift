// The parts of the gateway: messages from frames, frames from bytes, the last reply of a call, and the order of replies and errors.

import NIOCore
import NIOWebSocket
import Testing

@testable import vehicled_web

@Suite("Parts of the gateway") struct GatewayTests {
  private func frame(_ text: String, _ opcode: WebSocketOpcode = .text, fin: Bool = true) -> WebSocketFrame {
    WebSocketFrame(fin: fin, opcode: opcode, data: ByteBuffer(string: text))
  }

  // MARK: MessageAssembler

  @Test func `fragments become one message`() throws {
    var assembler = MessageAssembler()
    #expect(try assembler.add(frame("one")).map(String.init(buffer:)) == "one")
    #expect(try assembler.add(frame("a", fin: false)) == nil && assembler.add(frame("", .continuation, fin: false)) == nil)
    #expect(try assembler.add(frame("b", .continuation)).map(String.init(buffer:)) == "ab")
    #expect(try assembler.add(frame("")).map(String.init(buffer:)) == "")
  }

  @Test func `a message has a maximum length, also in fragments`() throws {
    var assembler = MessageAssembler()
    let half = String(repeating: "x", count: MessageAssembler.maxLength / 2)
    #expect(try assembler.add(frame(half, fin: false)) == nil && assembler.add(frame(half, .continuation, fin: false)) == nil)
    let error = #expect(throws: CloseReason.self) { try assembler.add(frame("x", .continuation)) }
    #expect(error?.code == .messageTooLarge)
  }

  @Test(arguments: [
    ([WebSocketOpcode.continuation], WebSocketErrorCode.protocolError), ([.text, .text], .protocolError),
    ([.binary], .unacceptableData), ([.text, .binary], .unacceptableData),
  ])
  func `unexpected frames are an error`(_ opcodes: [WebSocketOpcode], _ code: WebSocketErrorCode) {
    var assembler = MessageAssembler()
    let error = #expect(throws: CloseReason.self) { for opcode in opcodes { _ = try assembler.add(frame("x", opcode, fin: false)) } }
    #expect(error?.code == code)
  }

  @Test func `a close reason fits into a control frame`() {
    let reason = CloseReason.unavailable(String(repeating: "é", count: 100))
    #expect(reason.text.utf8.count == 122 && reason.code == .unknown(1013) && CloseReason.refused("short").text == "short")
  }

  // MARK: Silence

  @Test func `a silent daemon is called once, and counts as hung when it does not reply`() {
    var silence = Silence()
    #expect((0..<7).map { _ in silence.tick() } == [.wait, .wait, .call, .wait, .hung, .wait, .wait] && silence.isHung)
    silence.end()
    #expect(!silence.isHung)
    // A daemon that replies is called every 3 s, and one that sends values never.
    var calls = 0
    for _ in 0..<9 where silence.tick() == .call {
      calls += 1
      silence.end()
    }
    #expect(calls == 3)
    for _ in 0..<100 {
      #expect(silence.tick() != .call)
      silence.end()
    }
  }

  // MARK: ReplySplitter

  private func frames(_ chunks: String...) -> [String] {
    var splitter = ReplySplitter()
    return chunks.flatMap { splitter.frames(ByteBuffer(string: $0)) }.map {
      "\($0.opcode == .text ? "text" : "more")\($0.fin ? "." : "") \(String(buffer: $0.unmaskedData))"
    }
  }

  @Test func `each message of the service is one WebSocket message`() {
    #expect(frames("a\0bc\0") == ["text. a", "text. bc"])
    #expect(frames("ab", "c\0d", "\0") == ["text ab", "more. c", "text d", "more. "])
    #expect(frames("a", "b", "c\0") == ["text a", "more b", "more. c"])
    #expect(frames("") == [] && frames("\0") == ["text. "])
  }

  // MARK: ReplyScanner

  /// Whether another reply follows each of the messages, for any division into frames.
  private func continues(_ texts: String...) -> [Bool] {
    let results = [1, 2, 7, 1000].map { length in
      var (splitter, scanner, results) = (ReplySplitter(), ReplyScanner(), [Bool]())
      let bytes = Array(texts.map { $0 + "\0" }.joined().utf8)
      for start in stride(from: 0, to: bytes.count, by: length) {
        for frame in splitter.frames(ByteBuffer(bytes: bytes[start..<min(start + length, bytes.count)])) {
          if let continues = scanner.scan(frame) { results.append(continues) }
        }
      }
      return results
    }
    #expect(results.allSatisfy { $0 == results[0] })
    return results[0]
  }

  @Test func `another reply follows one that continues, wherever it says so`() {
    let replies = continues(
      #"{"parameters":{"a":[1,{"b":"c"}]},"continues":true}"#, #"{"continues":true,"parameters":{}}"#, #"{ "continues" : true }"#)
    #expect(replies == [true, true, true])
  }

  @Test func `texts and members of devices do not continue a call`() {
    let replies = continues(
      #"{"parameters":{}}"#, #"{"continues":false,"parameters":{"continues":true}}"#, #"{"parameters":[{"continues":true}]}"#,
      #"{"error":"continues","parameters":{"truth":true}}"#, #"{"a":"\",\"continues\":true,\"","b":true}"#,
      #"{"x":"continues","continue":true}"#,
      #"{"continues2":true,"\"continues":true}"#, #"{"a":"\\","continues":null}"#, "", "true", "}}]]\"")
    #expect(replies == Array(repeating: false, count: 11))
  }

  // MARK: CallQueue

  private func texts(_ errors: [ByteBuffer]) -> [String] { errors.map { String(buffer: $0) } }

  @Test func `an error is sent at once if no call is in progress`() {
    var queue = CallQueue()
    #expect(texts(queue.refused(ByteBuffer(string: "e"))) == ["e"] && queue.replied(continues: false).isEmpty)
  }

  @Test func `an error waits for the replies of the calls before it`() {
    var queue = CallQueue()
    queue.forwarded(streams: false)
    #expect(queue.refused(ByteBuffer(string: "e1")).isEmpty && queue.refused(ByteBuffer(string: "e2")).isEmpty)
    queue.forwarded(streams: false)
    #expect(queue.refused(ByteBuffer(string: "e3")).isEmpty)
    #expect(texts(queue.replied(continues: false)) == ["e1", "e2"] && texts(queue.replied(continues: false)) == ["e3"])
  }

  @Test func `a stream has any number of replies`() {
    var queue = CallQueue()
    queue.forwarded(streams: false)
    queue.forwarded(streams: true)
    for continues in [false, true, true] { #expect(queue.isStreaming && queue.replied(continues: continues).isEmpty) }
    #expect(queue.isStreaming)
  }

  @Test func `the last reply of a stream ends it`() {
    var queue = CallQueue()
    queue.forwarded(streams: true)
    #expect(queue.replied(continues: true).isEmpty && queue.replied(continues: false).isEmpty && !queue.isStreaming)
    #expect(texts(queue.refused(ByteBuffer(string: "e"))) == ["e"])
    queue.forwarded(streams: true)
    #expect(queue.isStreaming)
  }

  @Test func `the number of calls without a reply is limited`() {
    var queue = CallQueue()
    for _ in 0..<CallQueue.maxLength { queue.forwarded(streams: false) }
    #expect(queue.isFull)
    _ = queue.replied(continues: false)
    #expect(!queue.isFull)
  }
}
