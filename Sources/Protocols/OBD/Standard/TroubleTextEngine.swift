// Descriptions of engine codes: air, fuel, ignition and emissions (P00xx to P04xx, P20xx to P24xx). See TroubleText.

extension TroubleCode {
  static let engineText = """
    P0001 c4 fuel volume regulator control; P0005 c3 fuel shutoff valve control
    P0008 - engine position system performance, bank 1; P0009 - engine position system performance, bank 2
    P0010 - intake camshaft actuator circuit, bank 1; P0011 - intake camshaft too far advanced, bank 1
    P0012 - intake camshaft too far retarded, bank 1; P0013 - exhaust camshaft actuator circuit, bank 1
    P0014 - exhaust camshaft too far advanced, bank 1; P0015 - exhaust camshaft too far retarded, bank 1
    P0016 - crankshaft and camshaft position correlation, bank 1 sensor A
    P0017 - crankshaft and camshaft position correlation, bank 1 sensor B
    P0018 - crankshaft and camshaft position correlation, bank 2 sensor A
    P0019 - crankshaft and camshaft position correlation, bank 2 sensor B
    P0020 - intake camshaft actuator circuit, bank 2; P0021 - intake camshaft too far advanced, bank 2
    P0022 - intake camshaft too far retarded, bank 2; P0023 - exhaust camshaft actuator circuit, bank 2
    P0024 - exhaust camshaft too far advanced, bank 2; P0025 - exhaust camshaft too far retarded, bank 2
    P0030 c3 oxygen sensor heater bank 1 sensor 1 control; P0033 c3 turbocharger bypass valve control
    P0036 c3 oxygen sensor heater bank 1 sensor 2 control; P0040 - oxygen sensors swapped, bank 1 sensor 1 and bank 2 sensor 1
    P0041 - oxygen sensors swapped, bank 1 sensor 2 and bank 2 sensor 2; P0042 c3 oxygen sensor heater bank 1 sensor 3 control
    P0045 c4 turbocharger boost control; P0049 - turbocharger turbine overspeed
    P0050 c3 oxygen sensor heater bank 2 sensor 1 control; P0053 - oxygen sensor heater resistance, bank 1 sensor 1
    P0054 - oxygen sensor heater resistance, bank 1 sensor 2; P0055 - oxygen sensor heater resistance, bank 1 sensor 3
    P0056 c3 oxygen sensor heater bank 2 sensor 2 control; P0059 - oxygen sensor heater resistance, bank 2 sensor 1
    P0060 - oxygen sensor heater resistance, bank 2 sensor 2; P0061 - oxygen sensor heater resistance, bank 2 sensor 3
    P0062 c3 oxygen sensor heater bank 2 sensor 3 control; P0068 - manifold pressure or air flow to throttle position correlation
    P0069 - manifold pressure to barometric pressure correlation; P0070 c5 ambient air temperature sensor
    P0087 - fuel rail pressure too low; P0088 - fuel rail pressure too high; P0089 - fuel pressure regulator performance
    P0090 c3 fuel pressure regulator control; P0093 - large fuel leak; P0094 - small fuel leak
    P0095 c5 intake air temperature sensor 2; P0100 c5 air flow sensor; P0105 c5 manifold pressure sensor
    P0110 c5 intake air temperature sensor; P0115 c5 coolant temperature sensor; P0120 c5 throttle or pedal sensor A
    P0125 - coolant temperature too low for closed loop; P0126 - coolant temperature too low for stable operation
    P0127 - intake air too hot
    P0128 - coolant temperature below thermostat regulating temperature; P0129 - barometric pressure too low
    P0148 - fuel delivery error; P0149 - fuel timing error; P0168 - fuel too hot; P0169 - incorrect fuel composition
    P0170 - fuel trim, bank 1; P0171 - mixture too lean, bank 1; P0172 - mixture too rich, bank 1
    P0173 - fuel trim, bank 2; P0174 - mixture too lean, bank 2; P0175 - mixture too rich, bank 2
    P0176 c4 fuel composition sensor; P0180 c5 fuel temperature sensor A; P0185 c5 fuel temperature sensor B
    P0190 c5 fuel rail pressure sensor; P0195 c5 oil temperature sensor; P0200 - injector circuit
    P0213 - cold start injector 1; P0214 - cold start injector 2; P0215 - engine shutoff solenoid; P0216 - injection timing control circuit
    P0217 - engine too hot; P0218 - transmission too hot; P0219 - engine overspeed; P0220 c5 throttle or pedal sensor B
    P0225 c5 throttle or pedal sensor C; P0230 - fuel pump primary circuit; P0231 - fuel pump secondary circuit low
    P0232 - fuel pump secondary circuit high; P0233 - fuel pump secondary circuit intermittent; P0234 - turbocharger overboost
    P0235 c4 boost sensor A; P0239 c4 boost sensor B; P0243 - wastegate solenoid A
    P0244 - wastegate solenoid A range or performance; P0245 - wastegate solenoid A low; P0246 - wastegate solenoid A high
    P0247 - wastegate solenoid B; P0248 - wastegate solenoid B range or performance; P0249 - wastegate solenoid B low
    P0250 - wastegate solenoid B high; P0297 - vehicle overspeed; P0298 - engine oil too hot; P0299 - turbocharger underboost
    P0300 - random or multiple cylinder misfire; P0313 - misfire with low fuel; P0314 - single cylinder misfire, cylinder not specified
    P0315 - crankshaft variation not learned; P0316 - misfire at start; P0320 n4 engine speed input; P0324 - knock control system
    P0325 c5 knock sensor 1; P0330 c5 knock sensor 2; P0335 c5 crankshaft sensor A; P0340 c5 camshaft sensor A bank 1
    P0345 c5 camshaft sensor A bank 2; P0350 - ignition coil circuit; P0363 - misfire, fuel cut off
    P0365 c5 camshaft sensor B bank 1; P0380 - glow plug circuit A; P0381 - glow plug lamp circuit; P0382 - glow plug circuit B
    P0385 c5 crankshaft sensor B; P0390 c5 camshaft sensor B bank 2; P0400 - exhaust gas recirculation flow
    P0401 - exhaust gas recirculation flow too low; P0402 - exhaust gas recirculation flow too high
    P0403 - exhaust gas recirculation control circuit; P0404 - exhaust gas recirculation control range or performance
    P0405 l2 exhaust gas recirculation sensor A; P0407 l2 exhaust gas recirculation sensor B
    P0409 - exhaust gas recirculation sensor A circuit; P0410 - secondary air system; P0411 - incorrect secondary air flow
    P0412 o3 secondary air valve A; P0415 o3 secondary air valve B; P0418 - secondary air control A circuit
    P0419 - secondary air control B circuit; P0420 - catalyst efficiency too low, bank 1; P0421 - warm-up catalyst efficiency too low, bank 1
    P0422 - main catalyst efficiency too low, bank 1; P0423 - heated catalyst efficiency too low, bank 1
    P0424 - heated catalyst too cold, bank 1; P0430 - catalyst efficiency too low, bank 2
    P0431 - warm-up catalyst efficiency too low, bank 2; P0432 - main catalyst efficiency too low, bank 2
    P0433 - heated catalyst efficiency too low, bank 2; P0434 - heated catalyst too cold, bank 2
    P0440 - evaporative system; P0441 - incorrect evaporative purge flow; P0442 - evaporative system small leak
    P0443 o3 evaporative purge valve; P0446 o3 evaporative vent control; P0449 - evaporative vent valve circuit
    P0450 c5 evaporative pressure sensor; P0455 - evaporative system large leak; P0456 - evaporative system very small leak
    P0457 - evaporative system leak, fuel cap loose or off; P0458 l2 evaporative purge valve; P0460 c5 fuel level sensor A
    P0465 c5 purge flow sensor; P0470 c5 exhaust pressure sensor; P0480 - fan 1 control circuit; P0481 - fan 2 control circuit
    P0482 - fan 3 control circuit; P0483 - fan rationality check; P0484 - fan circuit overcurrent; P0485 - fan power or ground circuit
    P0486 - exhaust gas recirculation sensor B circuit; P0489 l2 exhaust gas recirculation control
    P0491 - secondary air flow too low, bank 1; P0492 - secondary air flow too low, bank 2; P0493 - fan overspeed
    P0496 - evaporative purge flow too high; P0497 - evaporative purge flow too low; P0498 l2 evaporative vent valve control
    P2000 - NOx trap efficiency too low, bank 1; P2001 - NOx trap efficiency too low, bank 2
    P2002 - particle filter efficiency too low, bank 1; P2003 - particle filter efficiency too low, bank 2
    P2004 - intake runner stuck open, bank 1; P2005 - intake runner stuck open, bank 2; P2006 - intake runner stuck closed, bank 1
    P2007 - intake runner stuck closed, bank 2; P2008 c3 intake runner control bank 1; P2011 c3 intake runner control bank 2
    P2014 c5 intake runner position sensor bank 1; P2019 c5 intake runner position sensor bank 2
    P2065 c5 fuel level sensor B; P2070 p2 intake tuning valve; P2088 l2 intake camshaft actuator bank 1
    P2090 l2 exhaust camshaft actuator bank 1; P2092 l2 intake camshaft actuator bank 2; P2094 l2 exhaust camshaft actuator bank 2
    P2096 t2 post-catalyst fuel trim of bank 1; P2098 t2 post-catalyst fuel trim of bank 2
    P2100 c4 throttle motor; P2104 - throttle control forced to idle; P2105 - throttle control forced engine shutdown
    P2106 - throttle control forced limited power; P2107 - throttle control processor; P2108 - throttle control module performance
    P2110 - throttle control forced limited engine speed; P2111 p2 throttle; P2118 - throttle motor current range or performance
    P2119 - throttle body range or performance; P2120 c5 throttle or pedal sensor D; P2125 c5 throttle or pedal sensor E
    P2130 c5 throttle or pedal sensor F; P2135 - throttle or pedal sensor A and B correlation
    P2136 - throttle or pedal sensor A and C correlation
    P2137 - throttle or pedal sensor B and C correlation; P2138 - throttle or pedal sensor D and E correlation
    P2139 - throttle or pedal sensor D and F correlation; P2140 - throttle or pedal sensor E and F correlation
    P2146 c3 injector group A supply; P2149 c3 injector group B supply; P2152 c3 injector group C supply; P2155 c3 injector group D supply
    P2172 - sudden high air flow at the throttle; P2173 - high air flow at the throttle; P2174 - sudden low air flow at the throttle
    P2175 - low air flow at the throttle; P2176 - throttle idle position not learned
    P2177 t2 mixture off idle of bank 1; P2179 t2 mixture off idle of bank 2; P2181 - cooling system performance
    P2182 c5 coolant temperature sensor 2; P2187 t2 mixture at idle of bank 1; P2189 t2 mixture at idle of bank 2
    P2191 t2 mixture at high load of bank 1; P2193 t2 mixture at high load of bank 2
    P2195 k2 oxygen sensor bank 1 sensor 1; P2197 k2 oxygen sensor bank 2 sensor 1; P2199 - intake air temperature sensor correlation
    P2200 c5 NOx sensor bank 1; P2205 c3 NOx sensor heater bank 1; P2213 c5 NOx sensor bank 2; P2218 c3 NOx sensor heater bank 2
    P2226 c5 barometric pressure sensor; P2237 c3 oxygen sensor positive current control bank 1 sensor 1
    P2240 c3 oxygen sensor positive current control bank 2 sensor 1; P2251 c3 oxygen sensor negative current control bank 1 sensor 1
    P2254 c3 oxygen sensor negative current control bank 2 sensor 1; P2261 - turbocharger bypass valve, mechanical
    P2262 - no boost pressure, mechanical; P2263 - boost system performance; P2264 c5 water in fuel sensor; P2269 - water in fuel
    P2270 k2 oxygen sensor bank 1 sensor 2; P2272 k2 oxygen sensor bank 2 sensor 2; P2274 k2 oxygen sensor bank 1 sensor 3
    P2276 k2 oxygen sensor bank 2 sensor 3; P2279 - intake air leak; P2293 - fuel pressure regulator 2 performance
    P2294 c3 fuel pressure regulator 2 control; P2299 - brake and accelerator pedal positions incompatible
    P2400 c3 evaporative leak pump control; P2413 - exhaust gas recirculation performance; P2418 c3 evaporative switching valve control
    P2421 p2 evaporative vent valve; P2425 c3 exhaust gas recirculation cooling valve; P2428 - exhaust gas too hot, bank 1
    P2429 - exhaust gas too hot, bank 2; P2430 c5 secondary air flow or pressure sensor bank 1; P2440 p2 secondary air valve of bank 1
    P2442 p2 secondary air valve of bank 2; P2444 f2 secondary air pump of bank 1; P2446 f2 secondary air pump of bank 2
    """
}
