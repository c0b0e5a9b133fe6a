// Derives the target address of a request and the receive filter from the AT settings and the bus of the car.
// The default filter of the ELM327 family is 7E8…7EF or 18DAF1xx on CAN; K-lines have none.

extension AdapterSettings {
  /// The address of a request.
  func address(on bus: DiagnosticBus) -> UInt32 {
    guard let header else { return bus.functionalAddress }
    switch bus {
    case .can11: return header & 0x7FF
    case .can29: return UInt32(priority) << 24 | header
    // An adapter that detects the protocol itself ignores a CAN header on a K-line.
    case .kwp, .iso9141: return alwaysDetectsProtocol && header <= 0x7FF ? bus.functionalAddress : header
    }
  }

  /// Whether frames with this identifier pass the receive filter.
  func accepts(_ id: UInt32, on bus: DiagnosticBus) -> Bool {
    let defaults = Self.defaultFilter(on: bus)
    let mask = mask ?? defaults.mask
    return !bus.isCAN || id & mask == (filter ?? defaults.filter) & mask
  }

  private static func defaultFilter(on bus: DiagnosticBus) -> (filter: UInt32, mask: UInt32) {
    bus == .can29 ? (0x18DA_F100, 0x1FFF_FF00) : (0x7E8, 0x7F8)
  }

  /// Whether the ECU that responds with this identifier receives a flow control frame. Without it, the ECU sends only the first frame of a
  /// long message. By default, the adapter sends the frame to the standard request address; this fails for manufacturer-specific addresses.
  func sendsFlowControl(to id: UInt32, on bus: DiagnosticBus) -> Bool {
    guard bus.isCAN else { return true }
    guard flowControl else { return false }
    let standardAddress = bus.requestAddress(forResponse: id)
    let (filter, mask) = Self.defaultFilter(on: bus)
    let target = id & mask == filter || bus.isFunctional(address(on: bus)) ? standardAddress : address(on: bus)
    // The host must put the address byte before the flow control.
    let content = extendedAddress == nil || flowData.first == extendedAddress ? flowData.dropFirst(extendedAddress == nil ? 0 : 1) : []
    let isFlowControlFrame = content.first.map { $0 >> 4 == 3 } ?? false
    switch flowMode {
    case 1: return flowHeader == target && isFlowControlFrame
    case 2: return standardAddress == target && isFlowControlFrame
    default: return standardAddress == target
    }
  }
}
