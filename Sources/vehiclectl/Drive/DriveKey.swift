// The keys for driving. No I/O.

/// The left and right button of the car. In the original app each is one half of the screen.
enum CarButton: String, CaseIterable { case left, right }

/// What a key does while driving.
enum DriveKey: Equatable {
  case direction(Steering.Direction)
  case stop
  /// Continue after a stop.
  case go
  /// Toggle the button, because a terminal does not report when a key is released.
  case button(CarButton)
  /// Set the limit of keys and sticks, as a fraction of the maximum, 0 to 1.
  case limit(Double)
  /// The terminal has lost the focus.
  case focusLost
  /// Draw the screen again.
  case repaint
  case end
}

extension DriveKey {
  /// Returns nil if the key has no function while driving.
  init?(_ press: KeyPress) {
    switch press {
    case .up, .character("w"), .character("W"): self = .direction(.forward)
    case .down, .character("s"), .character("S"): self = .direction(.backward)
    case .right, .character("d"), .character("D"): self = .direction(.right)
    case .left, .character("a"), .character("A"): self = .direction(.left)
    case .character(" "): self = .stop
    case .enter, .character("c"), .character("C"): self = .go
    case .character(","), .character("<"): self = .button(.left)
    case .character("."), .character(">"): self = .button(.right)
    case .character("0"): self = .limit(1)
    case .character(let digit) where ("1"..."9").contains(digit): self = .limit(Double(digit.value - 0x30) / 10)
    case .character("q"), .character("Q"), .control("C"), .control("D"): self = .end
    case .focusLost: self = .focusLost
    case .control("L"): self = .repaint
    default: return nil
    }
  }
}
