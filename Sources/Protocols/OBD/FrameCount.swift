// The response-count digit: with it an adapter gives its prompt as soon as the frames are there, which makes 20 Hz
// reachable. A wrong one loses frames, so it is learned from a full reply, dropped at the first doubt, and learned again
// ever more slowly. It counts for one connection.

struct FrameCount: Sendable {
  private static let timeout = [1, 1, 16, 256]

  /// Frames to ask for, 1 to 15, or nil to let the adapter wait.
  private(set) var frames: Int?
  private var isUnknown = false
  private var drops = 0
  private var fullReplies = 0

  /// The whole answer came in so many frames.
  mutating func answered(frames needed: Int) {
    if let frames {
      if frames != needed { drop() }
    } else if !isUnknown {
      fullReplies += 1
      if fullReplies >= Self.timeout[min(drops, Self.timeout.count - 1)], needed <= 15 { frames = needed }
    }
  }

  /// A counted request was answered with anything else.
  mutating func drop() {
    frames = nil
    drops += 1
    fullReplies = 0
  }

  /// The adapter does not know the digit.
  mutating func isRefused() {
    frames = nil
    isUnknown = true
  }
}
