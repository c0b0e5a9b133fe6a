// Sends one message of ISO 15765-2: a single frame, or a first frame and, as the receiver permits, consecutive frames. The owner sends the
// frames that `next` returns, passes on flow controls, and calls again at `deadline`.

package struct ISOTPSender: Sendable {
  package enum Failure: Error, Equatable, Sendable {
    /// The message is empty or longer than 4095 bytes.
    case wrongLength
    /// The receiver did not permit further frames in time.
    case noFlowControl
    /// The receiver has no room for the message.
    case overflow
    /// The receiver answered with a reserved status (ISO 15765-2, N_INVALID_FS).
    case invalidStatus
    /// The receiver asked too often to wait.
    case tooManyWaits

    package var message: String {
      switch self {
      case .wrongLength: "a request has 1 to \(CANFrame.maxISOTPLength) bytes"
      case .noFlowControl: "the ECU does not accept a request of several frames"
      case .overflow: "the request is too long for the ECU"
      case .invalidStatus: "the ECU answers a request of several frames with an invalid flow control"
      case .tooManyWaits: "the ECU delays a request of several frames without end"
      }
    }
  }

  private enum State: Sendable {
    /// The first or only frame is next.
    case beginning
    /// The receiver must permit further frames.
    case waiting(deadline: Instant)
    /// The next consecutive frame is due at this time.
    case continuing(due: Instant)
    case done
    case failed(Failure)
  }

  private let message: [UInt8]
  private let identifier: CANIdentifier
  private let addressing: ISOTPAddressing
  private let padding: UInt8?
  private let timeouts: ISOTPTimeouts
  private var state: State
  private var sentBytes = 0
  private var nextNumber: UInt8 = 1
  /// The frames that the receiver still permits; nil: all of them.
  private var permitted: Int?
  private var separation: Nanoseconds = 0
  private var waits = 0

  /// `padding`: the byte that fills frames, or nil for frames as short as possible.
  package init(
    _ message: [UInt8], to identifier: CANIdentifier, _ addressing: ISOTPAddressing = .normal, padding: UInt8?,
    timeouts: ISOTPTimeouts = ISOTPTimeouts()
  ) {
    (self.message, self.identifier, self.addressing, self.padding, self.timeouts) = (message, identifier, addressing, padding, timeouts)
    state = message.isEmpty || message.count > CANFrame.maxISOTPLength ? .failed(.wrongLength) : .beginning
  }

  package var isDone: Bool { if case .done = state { true } else { false } }
  package var failure: Failure? { if case .failed(let failure) = state { failure } else { nil } }

  /// When `next` must be called again, or nil if only the receiver's permission is awaited or nothing is left.
  package var deadline: Instant? {
    switch state {
    case .waiting(let deadline): deadline
    case .continuing(let due): due
    case .beginning, .done, .failed: nil
    }
  }

  /// The next frame if one is due, otherwise nil. Call it until it returns nil.
  package mutating func next(at now: Instant) -> CANFrame? {
    switch state {
    case .beginning: return begin(at: now)
    case .waiting(let deadline):
      if now >= deadline { state = .failed(.noFlowControl) }
      return nil
    case .continuing(let due): return now >= due ? proceed(at: now) : nil
    case .done, .failed: return nil
    }
  }

  private mutating func begin(at now: Instant) -> CANFrame {
    if message.count < addressing.sentCapacity {
      state = .done
      return frame(UInt8(message.count), message[...])
    }
    sentBytes = addressing.sentCapacity - 2
    state = .waiting(deadline: now &+ timeouts.flowControl)
    return frame(0x10 | UInt8(message.count >> 8), second: UInt8(message.count & 0xFF), message[..<sentBytes])
  }

  private mutating func proceed(at now: Instant) -> CANFrame {
    let count = min(addressing.sentCapacity - 1, message.count - sentBytes)
    let result = frame(0x20 | nextNumber, message[sentBytes..<sentBytes + count])
    sentBytes += count
    nextNumber = (nextNumber + 1) & 15
    if sentBytes == message.count {
      state = .done
    } else if permitted == 1 {
      state = .waiting(deadline: now &+ timeouts.flowControl)
    } else {
      permitted = permitted.map { $0 - 1 }
      state = .continuing(due: now &+ separation)
    }
    return result
  }

  private func frame(_ control: UInt8, second: UInt8? = nil, _ bytes: ArraySlice<UInt8>) -> CANFrame {
    CANFrame(isotp: control, second: second, bytes, to: identifier, addressing, padding: padding)
  }

  /// Handles a flow control of the receiver. It has no effect unless one is awaited.
  package mutating func receive(_ flowControl: ISOTPFlowControl, at now: Instant) {
    guard case .waiting = state else { return }
    switch flowControl.status {
    case .proceed:
      permitted = flowControl.blockSize == 0 ? nil : Int(flowControl.blockSize)
      (separation, waits) = (flowControl.separationTime, 0)
      state = .continuing(due: now)
    case .wait:
      waits += 1
      state = waits > timeouts.maxWaits ? .failed(.tooManyWaits) : .waiting(deadline: now &+ timeouts.flowControl)
    case .overflow: state = .failed(.overflow)
    case .reserved: state = .failed(.invalidStatus)
    }
  }
}
