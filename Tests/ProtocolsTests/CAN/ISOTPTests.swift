import Testing

@testable import Peers
@testable import Protocols

@Suite struct ISOTPTests {
  static let request = CANIdentifier(0x7E4)
  static let response = CANIdentifier(0x7EC)

  /// A sender and a receiver that exchange their frames, with a limit of steps.
  struct Exchange {
    var sender: ISOTPSender
    var receiver: ISOTPReceiver
    var now: Instant = 0
    /// Drops a frame of the sender by its index.
    var lost: Set<Int> = []
    private(set) var frames: [CANFrame] = []
    private(set) var events: [ISOTPReceiver.Event] = []

    init(
      _ message: [UInt8], _ addressing: ISOTPAddressing = .normal, padding: UInt8? = 0, flowControl: ISOTPFlowControl = ISOTPFlowControl()
    ) {
      sender = ISOTPSender(message, to: ISOTPTests.request, addressing, padding: padding)
      receiver = ISOTPReceiver(
        ISOTPAddressing(sentByte: addressing.receivedByte, receivedByte: addressing.sentByte), flowControl: flowControl)
    }

    mutating func run() {
      for _ in 0..<2000 where !sender.isDone && sender.failure == nil {
        if let frame = sender.next(at: now) {
          frames.append(frame)
          guard !lost.contains(frames.count - 1) else { continue }
          let event = receiver.receive(frame, at: now)
          if event != .none { events.append(event) }
          if case .awaitsFlowControl = event { sender.receive(receiver.flowControl, at: now) }
        } else if let deadline = sender.deadline {
          now = max(now, deadline)
        } else {
          return
        }
      }
    }
  }

  @Test(arguments: [1, 6, 7, 8, 13, 20, 62, 4095])
  func `a message of any length arrives`(_ length: Int) {
    let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    var exchange = Exchange(message)
    exchange.run()
    #expect(exchange.events.last == .message(message, from: Self.request) && exchange.sender.isDone)
    #expect(exchange.frames.count == ISOTPMessage.frames(for: length, capacity: 7) && exchange.frames.allSatisfy { $0.count == 8 })
  }

  @Test func `random messages arrive with every addressing, padding and flow control`() {
    var random = SeededRandom(seed: 11)
    for _ in 0..<400 {
      let message = (0..<Int(1 + random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      let addressing = [ISOTPAddressing.normal, .extended(target: 0x12), .mixed(0x99)][Int(random.next() % 3)]
      let flowControl = ISOTPFlowControl(
        blockSize: UInt8(random.next() % 5), separation: UInt8(truncatingIfNeeded: random.next()))
      var exchange = Exchange(message, addressing, padding: random.next() % 2 == 0 ? nil : 0xAA, flowControl: flowControl)
      exchange.run()
      #expect(exchange.events.last == .message(message, from: Self.request))
    }
  }

  @Test func `a lost frame never gives a wrong message`() {
    var random = SeededRandom(seed: 12)
    for _ in 0..<200 {
      let message = (0..<Int(8 + random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      var exchange = Exchange(message)
      exchange.lost = [Int(random.next() % UInt64(ISOTPMessage.frames(for: message.count, capacity: 7)))]
      exchange.run()
      #expect(!exchange.events.contains { if case .message = $0 { true } else { false } })
    }
  }

  @Test func `the frames are those of ISO 15765-2`() throws {
    var sender = ISOTPSender(Array(1...20), to: Self.request, padding: 0xCC)
    #expect(sender.next(at: 0) == CANFrame("7E4#1014010203040506") && sender.next(at: 0) == nil)
    #expect(sender.deadline == .second)
    sender.receive(ISOTPFlowControl(blockSize: 1, separation: 0xF2), at: 5)
    #expect(sender.next(at: 5) == CANFrame("7E4#210708090A0B0C0D") && sender.next(at: 5) == nil, "one frame in a block")
    sender.receive(ISOTPFlowControl(separation: 0xF2), at: 10)
    #expect(sender.next(at: 10) == CANFrame("7E4#220E0F1011121314") && sender.isDone)
    var extended = ISOTPSender([0x22, 0xF1, 0x90], to: CANIdentifier(0x6F1), .extended(target: 0x12), padding: nil)
    #expect(extended.next(at: 0) == CANFrame("6F1#120322F190"))
    #expect(ISOTPFlowControl().frame(to: Self.request, .extended(target: 0x12), padding: 0) == CANFrame("7E4#1230000000000000"))
  }

  @Test func `separation times are kept`() {
    var sender = ISOTPSender(Array(0..<30), to: Self.request, padding: 0)
    _ = sender.next(at: 0)
    sender.receive(ISOTPFlowControl(separation: 10), at: 0)
    #expect(sender.next(at: 0) != nil && sender.next(at: 9 * .millisecond) == nil && sender.next(at: 10 * .millisecond) != nil)
    let times = [0: 0, 0x7F: 127_000, 0xF1: 100, 0xF9: 900, 0x80: 127_000, 0xFF: 127_000] as [UInt8: Int64]
    for (code, microseconds) in times { #expect(ISOTPFlowControl(separation: code).separationTime == microseconds * .microsecond) }
  }

  @Test func `a receiver that asks to wait, has no room or is silent ends the sending`() {
    func sender() -> ISOTPSender {
      var sender = ISOTPSender(Array(0..<30), to: Self.request, padding: 0)
      _ = sender.next(at: 0)
      return sender
    }
    var waiting = sender()
    waiting.receive(ISOTPFlowControl(.wait), at: 900 * .millisecond)
    #expect(waiting.next(at: 1800 * .millisecond) == nil && waiting.failure == nil, "a wait begins the time again")
    for _ in 0..<16 { waiting.receive(ISOTPFlowControl(.wait), at: 1800 * .millisecond) }
    #expect(waiting.failure == .tooManyWaits)
    var full = sender()
    full.receive(ISOTPFlowControl(.overflow), at: 1)
    #expect(full.failure == .overflow && full.next(at: 1) == nil)
    var confused = sender()
    guard case .flowControl(let reserved) = CANFrame("7EC#330000").isotp() else { return #expect(Bool(false)) }
    confused.receive(reserved, at: 1)
    #expect(confused.failure == .invalidStatus && confused.next(at: 1) == nil)
    var silent = sender()
    #expect(silent.next(at: .second) == nil && silent.failure == .noFlowControl)
    #expect(ISOTPSender([], to: Self.request, padding: 0).failure == .wrongLength)
    #expect(ISOTPSender(Array(repeating: 0, count: 4096), to: Self.request, padding: 0).failure == .wrongLength)
  }

  @Test func `several senders are received at once`() throws {
    var receiver = ISOTPReceiver()
    let other = CANIdentifier(0x7E9)
    #expect(receiver.receive(CANFrame("7E8#100A410001020304"), at: 0) == .awaitsFlowControl(CANIdentifier(0x7E8)))
    #expect(receiver.receive(CANFrame("7E9#100A410005060708"), at: 0) == .awaitsFlowControl(other))
    #expect(receiver.receive(CANFrame("7EA#037F0112"), at: 0) == .message([0x7F, 1, 0x12], from: CANIdentifier(0x7EA)))
    #expect(receiver.receive(CANFrame("7E9#21090A0B0C"), at: 0) == .message([0x41, 0, 5, 6, 7, 8, 9, 10, 11, 12], from: other))
    #expect(receiver.isReceiving && receiver.deadline == .second && receiver.expire(at: .second - 1).isEmpty)
    #expect(receiver.expire(at: .second) == [CANIdentifier(0x7E8)] && !receiver.isReceiving)
  }

  @Test func `frames out of order end a message, and those without beginning are ignored`() throws {
    var receiver = ISOTPReceiver()
    #expect(receiver.receive(CANFrame("7EC#2101020304050607"), at: 0) == .none)
    _ = receiver.receive(CANFrame("7EC#1014010203040506"), at: 0)
    #expect(receiver.receive(CANFrame("7EC#2201020304050607"), at: 0) == .failed(ISOTPReceiver.missingMessage, from: Self.response))
    #expect(!receiver.isReceiving && receiver.receive(CANFrame("7EC#2301020304050607"), at: 0) == .none)
    _ = receiver.receive(CANFrame("7EC#1014010203040506"), at: 0)
    #expect(receiver.receive(CANFrame("7EC#210102"), at: 0) == .failed("truncated frame", from: Self.response))
    _ = receiver.receive(CANFrame("7EC#1014010203040506"), at: 0)
    #expect(receiver.receive(CANFrame("7EC#0141"), at: 0) == .message([0x41], from: Self.response), "a new message ends the old one")
    #expect(!receiver.isReceiving)
  }

  @Test(arguments: [
    "7EC#", "7EC#00", "7EC#0841", "7EC#0241", "7EC#1007010203040506", "7EC#101401020304", "7EC#30", "7EC#3100", "7EC#4100", "7EC#R8",
  ])
  func `what is no frame of ISO-TP is ignored`(_ text: String) throws {
    var receiver = ISOTPReceiver()
    #expect(receiver.receive(CANFrame(text), at: 0) == .none && !receiver.isReceiving)
  }

  @Test func `frames for another address are ignored`() throws {
    var receiver = ISOTPReceiver(.extended(target: 0x12))
    #expect(receiver.receive(CANFrame("612#F20141"), at: 0) == .none)
    #expect(receiver.receive(CANFrame("612#F10141"), at: 0) == .message([0x41], from: CANIdentifier(0x612)))
  }

  @Test func `random frames are survived, and what is received is bounded`() {
    var random = SeededRandom(seed: 13)
    var receiver = ISOTPReceiver()
    for step in 0..<20_000 {
      let number = 0x7E0 | UInt32(random.next() % 16)
      let frame = CANFrame(CANIdentifier(number), (0..<Int(random.next() % 9)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      if case .message(let bytes, _) = receiver.receive(frame, at: Instant(step) * .millisecond) {
        #expect((1...CANFrame.maxISOTPLength).contains(bytes.count))
      }
      _ = receiver.expire(at: Instant(step) * .millisecond)
    }
  }
}
