// A serial port or pseudo-terminal: raw, exclusively ours, without flow control. Its end is the hang-up that the kernel
// reports when the cable is pulled. Its speed can be changed while it is ours, if it has one and no URL says it: at a
// pseudo-terminal or RFCOMM every speed is the same.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

extension ChannelLink {
  static func serial(path: String, baud: Int?, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, goneReason: "\(path) went away: was it unplugged?")
    let descriptor: CInt
    do {
      descriptor = try openPort(path, baud: baud ?? LinkURL.usualBaud)
    } catch {
      let reason = error.description
      // In a later turn: our owner does not know us yet.
      Loop.post { link.failed(reason) }
      return link
    }
    if baud == nil, clinux_serial_is_hardware(descriptor) == 1 { link.baud = LinkURL.usualBaud }
    NIOPipeBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .channelInitializer { $0.add(link) }
      .takingOwnershipOfDescriptor(inputOutput: descriptor)
      .whenComplete { result in
        Loop.post {
          switch result {
          case .success: link.cameUp()
          case .failure(let error):
            _ = Glibc.close(descriptor)
            link.failed("cannot use \(path): \(plainWords(error))")
          }
        }
      }
    return link
  }

  func setBaud(_ new: Int) {
    guard baud != nil, let descriptor else { return }
    // A driver takes the nearest speed that it knows; what fails here is a port that is about to end.
    _ = clinux_serial_raw(descriptor, UInt32(new))
    tcflush(descriptor, TCIOFLUSH)
    baud = new
  }

  /// Opens and configures the port, or says what is wrong with it and how to mend it.
  private static func openPort(_ path: String, baud: Int) throws(ValueError) -> CInt {
    let descriptor = Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      switch errno {
      case ENOENT, ENXIO, ENODEV: throw ValueError("\(path) is not there: is the adapter plugged in?")
      case EACCES, EPERM: throw ValueError("no permission to open \(path): give it to the daemon's group")
      case EHOSTDOWN, EIO: throw ValueError("\(path) does not answer: the adapter may be asleep")
      default: throw ValueError("cannot open \(path): \(systemWords(errno))")
      }
    }
    let locked = clinux_serial_lock(descriptor)
    let configured = locked == 0 ? clinux_serial_raw(descriptor, UInt32(baud)) : 0
    guard locked == 0, configured == 0 else {
      _ = Glibc.close(descriptor)
      if locked == -EWOULDBLOCK { throw ValueError("another program has \(path) open: end it first") }
      if configured == -ENOTTY || locked == -ENOTTY { throw ValueError("\(path) is not a serial port") }
      throw ValueError("cannot set \(path) to \(baud) baud: \(systemWords(-(locked != 0 ? locked : configured)))")
    }
    _ = clinux_serial_low_latency(descriptor)
    tcflush(descriptor, TCIOFLUSH)
    return descriptor
  }
}
