// Descriptions of codes of speed and idle, control modules, charging, transmission and electric drive (P05xx to P0Axx, P25xx to P27xx), and
// of chassis, body and network (C0, B0, U0). See TroubleText.

extension TroubleCode {
  static let powerText = """
    P0500 - vehicle speed sensor A; P0501 - vehicle speed sensor A range or performance; P0502 - vehicle speed sensor A circuit low
    P0503 - vehicle speed sensor A intermittent; P0504 - brake switch A and B correlation; P0505 - idle control system
    P0506 - idle speed lower than expected; P0507 - idle speed higher than expected; P0508 l2 idle control
    P0510 - closed throttle switch; P0511 - idle control circuit; P0512 - starter request circuit; P0513 - wrong immobilizer key
    P0520 c4 oil pressure sensor; P0524 - oil pressure too low; P0530 c4 refrigerant pressure sensor A; P0534 - refrigerant lost
    P0535 c5 evaporator temperature sensor; P0544 c3 exhaust temperature sensor bank 1 sensor 1
    P0547 c3 exhaust temperature sensor bank 2 sensor 1; P0550 c5 power steering pressure sensor; P0555 c5 brake booster pressure sensor
    P0560 - system voltage; P0561 - system voltage unstable; P0562 - system voltage low; P0563 - system voltage high
    P0564 - cruise control input A circuit; P0565 - cruise control on signal; P0566 - cruise control off signal
    P0567 - cruise control resume signal; P0568 - cruise control set signal; P0569 - cruise control coast signal
    P0570 - cruise control accelerate signal; P0571 c3 brake switch A; P0574 - cruise control, vehicle too fast
    P0575 c3 cruise control input; P0597 c3 thermostat heater control; P0600 - serial communication; P0601 - control module memory checksum
    P0602 - control module not programmed; P0603 - control module keep-alive memory (KAM); P0604 - control module RAM
    P0605 - control module ROM; P0606 - control module processor; P0607 - control module performance; P0610 - control module vehicle options
    P0611 - injector control module performance; P0613 - transmission control module processor
    P0614 - ECM and TCM incompatible; P0615 c3 starter relay; P0620 - generator control circuit
    P0621 - generator lamp circuit; P0622 - generator field circuit; P0625 l2 generator field; P0627 c3 fuel pump A control
    P0630 - VIN not programmed or wrong, engine control module; P0631 - VIN not programmed or wrong, transmission control module
    P0633 - immobilizer key not programmed; P0634 - control module overtemperature; P0635 c3 power steering control
    P0638 - throttle control range or performance, bank 1; P0639 - throttle control range or performance, bank 2
    P0641 c3 sensor reference voltage A; P0645 c3 air conditioning clutch relay; P0650 - MIL circuit
    P0651 c3 sensor reference voltage B; P0654 - engine speed output circuit; P0656 - fuel level output circuit
    P0657 c3 actuator supply A; P0660 c3 intake tuning valve control bank 1; P0663 c3 intake tuning valve control bank 2
    P0666 c4 control module temperature sensor; P0670 - glow plug module control circuit; P0685 c3 engine control module relay control
    P0688 c3 engine control module relay sense; P0691 l2 fan 1 control; P0693 l2 fan 2 control; P0695 l2 fan 3 control
    P0697 c3 sensor reference voltage C; P2500 l2 generator lamp; P2502 - charging voltage; P2503 - charging voltage low
    P2504 - charging voltage high; P2505 c5 engine control module power input; P2539 c5 low-pressure fuel sensor
    P2556 c4 coolant level sensor; P2560 - coolant level low; P2562 c5 boost control position sensor; P2600 c4 coolant pump control
    P2610 - engine-off timer performance; P2632 c3 fuel pump B control; P2635 - fuel pump A flow too low; P2636 - fuel pump B flow too low
    P2645 a5 rocker arm actuator A bank 1; P2650 a5 rocker arm actuator B bank 1; P2655 a5 rocker arm actuator A bank 2
    P2660 a5 rocker arm actuator B bank 2; P2669 c3 actuator supply B
    """

  static let driveText = """
    P0700 - transmission control system requests the MIL; P0701 - transmission control range or performance
    P0702 - transmission control electrical
    P0703 - brake switch B circuit; P0704 - clutch switch circuit; P0705 c5 transmission range sensor
    P0710 c5 transmission fluid temperature sensor A; P0715 n4 turbine speed sensor A; P0719 - brake switch B circuit low
    P0720 n4 output speed sensor; P0724 - brake switch B circuit high; P0725 n4 engine speed to the transmission
    P0729 - gear 6 wrong ratio; P0730 - wrong gear ratio; P0731 - gear 1 wrong ratio; P0732 - gear 2 wrong ratio; P0733 - gear 3 wrong ratio
    P0734 - gear 4 wrong ratio; P0735 - gear 5 wrong ratio; P0736 - reverse wrong ratio; P0740 - torque converter clutch circuit
    P0741 - torque converter clutch stuck off; P0742 - torque converter clutch stuck on; P0743 - torque converter clutch electrical fault
    P0744 - torque converter clutch intermittent; P0745 s5 pressure solenoid A; P0750 s5 shift solenoid A; P0755 s5 shift solenoid B
    P0760 s5 shift solenoid C; P0765 s5 shift solenoid D; P0770 s5 shift solenoid E; P0775 s5 pressure solenoid B
    P0780 - shift error; P0781 - shift 1-2; P0782 - shift 2-3; P0783 - shift 3-4; P0784 - shift 4-5
    P0791 n4 intermediate shaft speed sensor A
    P0795 s5 pressure solenoid C; P0801 - reverse inhibit circuit; P0805 c5 clutch position sensor; P0810 - clutch position control
    P0811 - excessive clutch slippage; P0812 - reverse input circuit; P0820 - gear lever position sensor circuit; P0829 - shift 5-6
    P0830 c3 clutch pedal switch A; P0833 c3 clutch pedal switch B; P0836 c4 four-wheel drive switch
    P0840 c5 transmission pressure sensor A; P0845 c5 transmission pressure sensor B; P0850 c3 park or neutral switch
    P0853 c3 drive switch; P0867 - transmission fluid pressure; P0868 - transmission fluid pressure low
    P0869 - transmission fluid pressure high
    P0870 c5 transmission pressure sensor C; P0875 c5 transmission pressure sensor D; P0880 c5 transmission control module power input
    P0894 - transmission slips; P0895 - shift time too short; P0896 - shift time too long; P0897 - transmission fluid deteriorated
    P0900 c4 clutch actuator; P0960 c4 pressure solenoid A control; P0964 c4 pressure solenoid B control
    P0968 c4 pressure solenoid C control
    P0972 r3 shift solenoid A control; P0975 r3 shift solenoid B control; P0978 r3 shift solenoid C control
    P0981 r3 shift solenoid D control
    P0984 r3 shift solenoid E control; P0A00 c5 motor electronics coolant temperature sensor
    P0A05 c3 motor electronics coolant pump control
    P0A08 - DC-DC converter status circuit; P0A09 - DC-DC converter status circuit low; P0A10 - DC-DC converter status circuit high
    P0A0D - high voltage interlock circuit high; P0A0F - engine failed to start
    P0A1A - generator control module; P0A1B - drive motor A control module; P0A1F - battery energy control module
    P0A7F - hybrid battery pack deterioration; P0A80 - replace the hybrid battery; P0A94 - DC-DC converter performance
    P0AA0 - hybrid battery positive contactor circuit; P0AA1 - hybrid battery positive contactor stuck closed
    P0AA2 - hybrid battery positive contactor stuck open; P0AA4 - hybrid battery negative contactor stuck closed
    P0AA5 - hybrid battery negative contactor stuck open; P0AA6 - high voltage isolation fault; P0AFA - hybrid battery voltage low
    P0AFB - hybrid battery voltage high; P2713 s5 pressure solenoid D; P2706 s5 shift solenoid F
    """

  static let bodyText = """
    C0035 - front left wheel speed sensor; C0040 - front right wheel speed sensor; C0045 - rear left wheel speed sensor
    C0050 - rear right wheel speed sensor
    U0001 b9 high speed CAN bus; U0010 b9 medium speed CAN bus; U0019 b9 low speed CAN bus; U0028 b9 communication bus A
    U0037 b9 communication bus B; U0073 - control module communication bus off
    U0100 - no communication with the engine control module; U0101 - no communication with the transmission control module
    U0102 - no communication with the transfer case control module; U0103 - no communication with the gear shift module
    U0104 - no communication with the cruise control module; U0105 - no communication with the injector control module
    U0106 - no communication with the glow plug control module; U0107 - no communication with the throttle control module
    U0109 - no communication with the fuel pump control module; U0110 - no communication with the drive motor control module
    U0111 - no communication with battery energy control module A; U0112 - no communication with battery energy control module B
    U0114 - no communication with the four-wheel clutch control module; U0115 - no communication with engine control module B
    U0121 - no communication with the ABS control module; U0122 - no communication with the vehicle dynamics control module
    U0123 - no communication with the yaw rate sensor; U0124 - no communication with the lateral acceleration sensor
    U0125 - no communication with the multi-axis acceleration sensor; U0126 - no communication with the steering angle sensor
    U0127 - no communication with the tyre pressure monitor; U0128 - no communication with the park brake control module
    U0129 - no communication with the brake control module; U0130 - no communication with the steering effort control module
    U0131 - no communication with the power steering control module; U0132 - no communication with the ride level control module
    U0140 - no communication with the body control module; U0141 - no communication with body control module A
    U0142 - no communication with body control module B; U0146 - no communication with gateway A; U0147 - no communication with gateway B
    U0151 - no communication with the restraints control module; U0154 - no communication with the occupant sensing control module
    U0155 - no communication with the instrument cluster; U0158 - no communication with the head-up display
    U0159 - no communication with the parking assistant; U0164 - no communication with the climate control module
    U0166 - no communication with the auxiliary heater; U0167 - no communication with the immobilizer
    U0168 - no communication with the security control module; U0184 - no communication with the radio
    U0198 - no communication with the telematics control module; U0199 - no communication with door control module A
    U0200 - no communication with door control module B; U0208 - no communication with seat control module A
    U0212 - no communication with the steering column control module; U0300 - control module software incompatible
    U0301 - software incompatible with the engine control module; U0302 - software incompatible with the transmission control module
    U0400 - invalid data; U0401 - invalid data from the engine control module; U0402 - invalid data from the transmission control module
    U0403 - invalid data from the transfer case control module; U0404 - invalid data from the gear shift control module
    U0405 - invalid data from the cruise control module; U0415 - invalid data from the ABS control module
    U0416 - invalid data from the vehicle dynamics control module; U0420 - invalid data from the power steering control module
    U0422 - invalid data from the body control module; U0423 - invalid data from the instrument cluster
    U0424 - invalid data from the climate control module; U0428 - invalid data from the steering angle sensor
    """
}
